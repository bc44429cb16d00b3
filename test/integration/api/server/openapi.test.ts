import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import Router from '@koa/router';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ApiState } from '../../../../api/context.ts';
import { EVENT_SCHEMAS } from '../../../../api/contract/events/event.ts';
import { STATUS_OF } from '../../../../api/errors.ts';
import { register } from '../../../../api/http/route.ts';
import { ArchiveFolder } from '../../../../api/reads/archive-folder.ts';
import { openApiText } from '../../../../api/routes/documents.ts';
import { routeTable } from '../../../../api/server/app.ts';
import { VERSION } from '../../../../src/config/version.ts';
import { EVENTS } from '../../../../src/domain/events/events.ts';
import { EVENT_TYPES } from '../../../../src/domain/webhooks/event.ts';
import { signBody, standardSignature } from '../../../../src/domain/webhooks/signature.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { ALERT_BODIES } from '../../../factories/alert-events.ts';
import {
  ApiContract,
  type JsonSchema,
  type OpenApi,
  operationsOf,
  type ParameterObject,
  pointer,
  type ResponseObject,
} from '../../../support/api-contract.ts';
import { useTestApi } from '../api-harness.ts';

const api = useTestApi({ archive: new ArchiveFolder('/nowhere', createLogger({ process: 'test', level: 'silent' })) });
let contract: ApiContract;
let document: OpenApi;

beforeAll(async () => {
  const answer = await api.call('/openapi.json');
  contract = new ApiContract(answer.text);
  document = contract.document;
});

/** Every nested value with its JSON path. */
function* walk(value: unknown, place: string[] = []): Generator<{ value: unknown; place: string[] }> {
  yield { value, place };
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) yield* walk(inner, [...place, key]);
}

/** Whether a place is inside an example, which is not part of the document structure. */
const isExample = (place: readonly string[]) => place.some((part) => part === 'example' || part === 'examples');

const parametersOf = (operation: { parameters?: unknown[] }) =>
  (operation.parameters ?? []).map(
    (given) =>
      (typeof given === 'object' && given !== null && '$ref' in given
        ? contract.resolve(String(given.$ref))
        : given) as ParameterObject,
  );

const hasPython = spawnSync('python3', ['--version']).status === 0;

describe('/openapi.json', () => {
  const patternsOf = () =>
    [...walk(document)].flatMap(({ value, place }) =>
      place.at(-1) === 'pattern' && typeof value === 'string' && !isExample(place) ? [value] : [],
    );

  it('has no pattern with a class that only some languages know', () => {
    expect(patternsOf().length).toBeGreaterThan(5);
    expect(patternsOf().filter((pattern) => /\\[pP]\{/.test(pattern))).toEqual([]);
  });

  it.runIf(hasPython)('has patterns that Python compiles', () => {
    const compile = 'import json, re, sys\nfor pattern in json.load(sys.stdin): re.compile(pattern)';
    const { status, stderr } = spawnSync('python3', ['-c', compile], { input: JSON.stringify(patternsOf()) });
    expect([status, stderr.toString()]).toEqual([0, '']);
  });

  it('has a description and a security requirement for every operation, also of deliveries', () => {
    const operations = [document.paths, document.webhooks].flatMap((paths) =>
      Object.values(paths).flatMap(Object.values),
    );
    for (const { operationId, description, security } of operations as {
      operationId: string;
      description?: string;
      security?: unknown[];
    }[]) {
      expect([operationId, description === '' ? undefined : typeof description]).toEqual([operationId, 'string']);
      expect([operationId, Array.isArray(security)]).toEqual([operationId, true]);
    }
    expect(document.info['contact']).toEqual({ name: expect.any(String) });
  });

  it('accepts each spelling of a list that the route accepts: one value, a comma list, and the parameter repeated', async () => {
    const client = await api.client();
    const lists = operationsOf(document).flatMap(({ path, method, operation }) =>
      parametersOf(operation).flatMap((parameter, index) =>
        / comma list/i.test(String((parameter as { description?: string }).description))
          ? [{ path, method, index: String(index), ...parameter }]
          : [],
      ),
    );
    expect(lists.map(({ path, name }) => `${path} ${name}`)).toEqual(
      expect.arrayContaining([
        '/v1/{venue}/markets status',
        '/v1/{venue}/stream channels',
        '/v1/{venue}/prices market_ids',
      ]),
    );
    for (const { path, method, index, name, schema } of lists) {
      const place = pointer(['paths', path, method, 'parameters', index, 'schema']);
      const forms = (schema['anyOf'] ?? []) as JsonSchema[];
      const names = (forms.find(({ type }) => type === 'array')?.['items'] as { enum: string[] } | undefined)?.enum;
      const [one = '', two = ''] = names ?? ['id-1', 'id-2'];
      for (const value of [one, `${one},${two}`, ...(names ? [[one], [one, two]] : [])]) {
        expect([path, name, value, contract.problemsOfValue(value, place)]).toEqual([path, name, value, []]);
      }
      if (!names) continue;
      for (const value of ['nonsense', `${one},nonsense`, `${one},`, [], ['nonsense']])
        expect([path, name, value, contract.problemsOfValue(value, place).length > 0]).toEqual([
          path,
          name,
          value,
          true,
        ]);
      if (path.endsWith('/stream')) continue;
      const target = path.replaceAll('{venue}', 'all').replaceAll('{webhook_id}', 'wh_1');
      for (const query of [`${name}=${one},${two}`, `${name}=${one}&${name}=${two}`]) {
        const answer = await (path.includes('{venue}') || path === '/v1/archive'
          ? client.market(`${target}?${query}`)
          : client.account('GET', `${target}?${query}`));
        expect([path, query, answer.status]).toEqual([path, query, 200]);
      }
    }
  });

  it('is served without a key, and answers 304 to its own ETag', async () => {
    const answer = await api.call('/openapi.json');
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('cache-control')]).toEqual([
      200,
      'application/json; charset=utf-8',
      'public, max-age=300',
    ]);
    const etag = answer.headers.get('etag') ?? '';
    const again = await api.call('/openapi.json', { headers: { 'If-None-Match': etag } });
    expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag]);
    expect(answer.text).toBe((await api.call('/openapi.json', { headers: { 'Accept-Encoding': 'identity' } })).text);
  });

  it('names its title, version and licence', () => {
    expect(document.openapi).toBe('3.1.1');
    expect(document.info).toMatchObject({ title: 'oddswire', version: VERSION });
    expect(document.servers).toEqual([expect.objectContaining({ url: '/' })]);
    expect(document.components.securitySchemes).toMatchObject({
      bearer: { type: 'http', scheme: 'bearer' },
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
    });
  });

  it('names exactly the routes of the router', () => {
    const router = new Router<ApiState>();
    register(router, api.deps, routeTable(api.deps));
    // A layer with every method refuses the other methods of its path.
    const answering = router.stack.filter(({ methods }) => !methods.includes('OPTIONS'));
    const routed = answering.flatMap(({ methods, path }) =>
      methods
        .filter((method) => method !== 'HEAD')
        .map((method) => `${method} ${String(path).replaceAll(/:(\w+)/g, '{$1}')}`),
    );
    const documented = operationsOf(document).map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(documented.sort()).toEqual(routed.sort());
  });

  it('states the key of each route', async () => {
    for (const { method, path, operation } of operationsOf(document)) {
      const answer = await api.call(path.replaceAll(/\{\w+\}/g, 'x'), { method: method.toUpperCase() });
      const challenge = answer.headers.get('www-authenticate')?.split(' ')[0];
      const scheme = challenge === 'Bearer' ? 'bearer' : challenge === 'ApiKey' ? 'apiKey' : undefined;
      expect([path, operation.security]).toEqual([path, scheme === undefined ? [] : [{ [scheme]: [] }]]);
    }
  });
});

describe('the document', () => {
  it('has no dangling references', () => {
    const refs = [...walk(document)].filter(({ place }) => place.at(-1) === '$ref' && !isExample(place));
    expect(refs.length).toBeGreaterThan(100);
    for (const { value } of refs) {
      expect(value).toMatch(/^#\/components\//);
      expect([value, contract.resolve(String(value)) === undefined]).toEqual([value, false]);
    }
  });

  it('has no unused components', () => {
    const used = new Set([...walk(document)].flatMap(({ place, value }) => (place.at(-1) === '$ref' ? [value] : [])));
    for (const part of ['schemas', 'responses', 'headers', 'parameters'] as const) {
      for (const name of Object.keys(document.components[part])) {
        // The description covers these for all paths.
        if (['ErrorCode', 'method_not_allowed'].includes(name)) continue;
        expect([name, used.has(`#/components/${part}/${name}`)]).toEqual([name, true]);
      }
    }
  });

  it('has operations with all fields that OpenAPI requires', () => {
    const tags = (document.tags as { name: string }[]).map(({ name }) => name);
    const all = operationsOf(document);
    const received = Object.values(document.webhooks).flatMap((item) => (item['post'] ? [item['post']] : []));
    const ids = [...all.map(({ operation }) => operation), ...received].map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation } of all) {
      expect(operation.operationId).toMatch(/^[a-z][A-Za-z]+$/);
      expect(tags).toContain(operation.tags[0]);
      const parameters = parametersOf(operation);
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const inPath = parameters.filter((parameter) => parameter.in === 'path');
      expect([path, inPath.map(({ name }) => name)]).toEqual([path, named]);
      for (const { required } of inPath) expect(required).toBe(true);
      const places = parameters.map((parameter) => `${parameter.in} ${parameter.name.toLowerCase()}`);
      expect(new Set(places).size).toBe(places.length);
      const statuses = Object.keys(operation.responses);
      // A long backtest, and a part of a file.
      const further: Record<string, string[]> = { backtestAlert: ['202'], getArchiveFile: ['206'] };
      expect(statuses.filter((status) => status.startsWith('2'))).toEqual([
        expect.any(String),
        ...(further[operation.operationId] ?? []),
      ]);
      for (const status of statuses) expect(status).toMatch(/^[1-5]\d\d$/);
    }
  });

  it('has JSON schemas of the 2020-12 dialect', () => {
    const ajv = new Ajv2020({ strict: false });
    const schemas = [...walk(document)].filter(({ place }) => !isExample(place) && place.at(-1) === 'schema');
    expect(schemas.length).toBeGreaterThan(50);
    for (const { value, place } of [...schemas, ...Object.values(document.components.schemas).map(asPlaced)]) {
      expect([place, ajv.validateSchema(value as JsonSchema), ajv.errors]).toEqual([place, true, null]);
    }
  });

  it('has responses with a description, and component names that OpenAPI allows', () => {
    for (const { value, place } of walk(document)) {
      if (isExample(place) || place.at(-2) !== 'responses') continue;
      const response = (
        '$ref' in (value as object) ? contract.resolve((value as { $ref: string }).$ref) : value
      ) as ResponseObject;
      expect([place, typeof response.description]).toEqual([place, 'string']);
    }
    for (const part of Object.values(document.components)) {
      for (const name of Object.keys(part as object)) expect(name).toMatch(/^[a-zA-Z0-9._-]+$/);
    }
  });

  const asPlaced = (value: JsonSchema) => ({ value, place: ['components', 'schemas'] });
});

describe('examples', () => {
  /** Media types and parameters with their examples and the place of their schema. */
  function examplesOf(within: ApiContract) {
    const found = new Map<string, { example: unknown; schema: string }>();
    // Many routes share parameters, so one copy is enough.
    const add = (schema: JsonSchema, example: unknown, at: string) =>
      found.set(JSON.stringify([schema, example]), { example, schema: at });
    for (const { value, place } of walk(within.document)) {
      if (isExample(place) || typeof value !== 'object' || value === null || !('schema' in value)) continue;
      const {
        example,
        examples = {},
        schema,
      } = value as {
        example?: unknown;
        examples?: Record<string, { value: unknown }>;
        schema: JsonSchema;
      };
      const at = pointer([...place, 'schema']);
      if (example !== undefined) add(schema, example, at);
      if (schema.example !== undefined) add(schema, schema.example, at);
      for (const { value: one } of Object.values(examples)) add(schema, one, at);
    }
    return [...found.values()];
  }

  it('exist for every answer and every body, and match their schemas', () => {
    for (const { path, operation } of operationsOf(document)) {
      const contents = [
        operation.requestBody?.content ?? {},
        ...Object.values(operation.responses).map(
          (given) => (('$ref' in given ? contract.resolve(given.$ref) : given) as ResponseObject).content ?? {},
        ),
      ];
      for (const content of contents) {
        const json = content['application/json'];
        if (!json || path === '/openapi.json' || path === '/asyncapi.json') continue;
        expect([path, json.example !== undefined || Object.keys(json.examples ?? {}).length > 0]).toEqual([path, true]);
      }
    }
    const examples = examplesOf(contract);
    expect(examples.length).toBeGreaterThan(80);
    for (const { example, schema } of examples) expect(contract.problemsOfValue(example, schema)).toEqual([]);
  });

  it('write decimals in the configured form', () => {
    const deps = { ...api.deps, decimalFormat: 'string' as const };
    const texts = new ApiContract(openApiText(deps, routeTable(deps)));
    const succeeded = examplesOf(texts).filter(({ schema }) => schema.includes('/get/responses/200/'));
    expect(succeeded.length).toBeGreaterThan(15);
    for (const { example, schema } of succeeded) expect(texts.problemsOfValue(example, schema)).toEqual([]);
    const { Candle, Alert } = texts.document.components.schemas;
    expect(Candle).toMatchObject({ properties: { open: { type: 'string', format: 'decimal' } } });
    expect(document.components.schemas['Candle']).toMatchObject({
      properties: { open: { type: 'number', format: 'decimal' } },
    });
    // A `number` field stays a number.
    expect(Alert).toMatchObject({ properties: { price: { type: 'number' } } });
  });
});

describe('errors', () => {
  it('are listed under their status without omission', () => {
    const codes = Object.entries(STATUS_OF);
    expect(document.components.schemas['ErrorCode']).toMatchObject({ enum: codes.map(([code]) => code) });
    for (const { path, operation } of operationsOf(document)) {
      for (const [status, given] of Object.entries(operation.responses)) {
        const response = ('$ref' in given ? contract.resolve(given.$ref) : given) as ResponseObject;
        for (const code of Object.keys(response.content?.['application/json']?.examples ?? {})) {
          // Errors of the HTTP parser have the code of status 400.
          const expected = ['408', '431'].includes(status) ? 400 : Number(status);
          expect([path, code, STATUS_OF[code as keyof typeof STATUS_OF]]).toEqual([path, code, expected]);
        }
      }
    }
  });
});

describe('the webhooks section', () => {
  it('matches the sent body of every event', () => {
    expect(Object.keys(document.webhooks).sort()).toEqual([...EVENT_TYPES].sort());
    for (const type of EVENT_TYPES) {
      const body = EVENTS[type].sample({ eventId: 'evt_1', occurredAt: new Date(1.7e12) }, 'wh_1');
      const place = pointer(['webhooks', type, 'post', 'requestBody', 'content', 'application/json', 'schema']);
      expect([type, contract.problemsOfValue(JSON.parse(body), place)]).toEqual([type, []]);
      expect(contract.problemsOfValue({ ...JSON.parse(body), type: 'other' }, place)).not.toEqual([]);
    }
  });

  const alertSchema = () =>
    pointer(['webhooks', 'price_alert', 'post', 'requestBody', 'content', 'application/json', 'schema']);

  it.each(ALERT_BODIES)('matches the sent body of an alert: %s', (_name, body) => {
    expect(contract.problemsOfValue(JSON.parse(body), alertSchema())).toEqual([]);
  });

  it('has an example of each form of an alert, which matches its form only', () => {
    const { examples } = document.webhooks['price_alert']?.['post']?.requestBody?.content?.['application/json'] ?? {};
    const forms = EVENT_SCHEMAS.price_alert.shape.data.options;
    const fits = Object.entries(examples ?? {}).map(([name, { value }]) => {
      expect(contract.problemsOfValue(value, alertSchema())).toEqual([]);
      const { data } = value as { data: object };
      return [name, forms.flatMap((form, at) => (z.strictObject(form.shape).safeParse(data).success ? [at] : []))];
    });
    expect(fits).toEqual([
      ['above', [0]],
      ['change', [1]],
      ['executable', [2]],
      ['status', [3]],
      ['correction', [3]],
    ]);
  });

  it('matches the headers of a delivery, including signatures', () => {
    const headers = new Map(
      parametersOf(document.webhooks['test']?.['post'] ?? {}).map(({ name, schema }) => [name, schema]),
    );
    const page = readFileSync(new URL('../../../../docs/webhooks.md', import.meta.url), 'utf8');
    const documented = [...page.matchAll(/^\| `([\w-]+)` +\| /gm)].map(([, name]) => name ?? '');
    const known = documented.filter((name) => /^(x-)?webhook-/i.test(name));
    expect(known.length).toBeGreaterThanOrEqual(8);
    expect([...headers.keys()].sort()).toEqual(known.sort());
    const secrets = ['a secret of sixteen', 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='];
    const signed = standardSignature(secrets, 'evt_1', 1_767_323_045, '{}');
    expect(signed).toMatch(new RegExp(String(headers.get('webhook-signature')?.['pattern'])));
    expect(signBody('a secret of sixteen', '{}')).toMatch(
      new RegExp(String(headers.get('X-Webhook-Signature')?.['pattern'])),
    );
  });
});

describe('docs/api.md', () => {
  const page = readFileSync(new URL('../../../../docs/api.md', import.meta.url), 'utf8');
  /** A path without its parameter names. */
  const plain = (path: string) => path.replaceAll(/\{(?!venue\})\w+\}/g, '{}');
  const documented = [...page.matchAll(/`(GET|POST|PUT|PATCH|DELETE) ([^`\s]+)`/g)].map(
    ([, method = '', path = '']) => ({
      method,
      path,
    }),
  );

  const meant = ({ method, path }: { method: string; path: string }) =>
    operationsOf(document).filter((route) => {
      if (route.method.toUpperCase() !== method) return false;
      return path.startsWith('…')
        ? plain(route.path).endsWith(plain(path.slice(1)))
        : plain(route.path) === plain(path);
    });

  it('describes exactly the routes of the API', () => {
    for (const route of documented) expect([route, meant(route).length]).toEqual([route, 1]);
    const names = documented.flatMap((route) => meant(route).map(({ operation }) => operation.operationId));
    for (const { operation } of operationsOf(document)) expect(names).toContain(operation.operationId);
  });

  it('lists the query parameters of the market routes', () => {
    const rows = [...page.matchAll(/^\| `GET ([^`\s]+)` +\| (?:`([a-z_ ]*)`)? +\| /gm)];
    const market = rows.filter(([, path = '']) => meant({ method: 'GET', path })[0]?.operation.tags[0] === 'markets');
    expect(market.length).toBeGreaterThanOrEqual(10);
    for (const [, path = '', names = ''] of market) {
      const [route] = meant({ method: 'GET', path });
      const query = parametersOf(route?.operation ?? {}).filter((parameter) => parameter.in === 'query');
      expect([path, names.split(' ').filter(Boolean).sort()]).toEqual([path, query.map(({ name }) => name).sort()]);
    }
  });

  it('describes exactly the error codes under their status', () => {
    const table = page.slice(page.indexOf('| Status '), page.indexOf('\n\n', page.indexOf('| Status ')));
    const codes: Record<string, number> = {};
    for (const [, statuses = '', text = ''] of table.matchAll(/^\| ([\d, ]+) \| (.*)\|$/gm)) {
      for (const [, code = ''] of text.matchAll(/`([a-z_]+)`/g)) {
        const of = STATUS_OF[code as keyof typeof STATUS_OF];
        expect([code, statuses.split(',').map((status) => Number(status.trim()))]).toEqual([
          code,
          expect.arrayContaining([of]),
        ]);
        codes[code] = of;
      }
    }
    expect(codes).toEqual(STATUS_OF);
  });
});
