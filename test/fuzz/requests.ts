import fc from 'fast-check';
import { SCOPES } from '../../src/domain/values/api-key.ts';
import {
  type ApiContract,
  type JsonSchema,
  type Operation,
  operationsOf,
  type ParameterObject,
} from '../support/api-contract.ts';
import { hostileJson, hostileText, knownText, valuesOf } from './values.ts';
import { type KeyName, SPARE } from './world.ts';

/** A request with placeholders in place of ids (see `resolved`). */
export interface Plan {
  operationId: string;
  method: string;
  /** The path template. */
  path: string;
  /** Values by template parameter, not encoded yet. */
  segments: Record<string, string>;
  query: [name: string, value: string][];
  /** Appended to the target unchanged. */
  rawQuery: string;
  headers: [name: string, value: string][];
  auth: { header: 'Authorization' | 'X-API-Key'; value: string | { key: KeyName } }[];
  body: PlannedBody;
}
export type PlannedBody = { kind: 'none' } | { kind: 'json'; value: unknown } | { kind: 'raw'; base64: string };

const KEY_NAMES: readonly KeyName[] = ['other', 'limited', 'expired', ...SCOPES];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'];

/** Mostly the first arbitrary, sometimes one of the others. */
function mostly<T>(usual: fc.Arbitrary<T>, ...rest: fc.Arbitrary<T>[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 14, arbitrary: usual }, ...rest.map((arbitrary) => ({ weight: 1, arbitrary })));
}

/** Requests for every route of the document: most valid, many invalid. */
export function plans(contract: ApiContract): fc.Arbitrary<Plan> {
  const routes = operationsOf(contract.document).map((route) => {
    // Files and health have little input and large answers.
    const isPlain = route.operation.tags.some((tag) => tag === 'contract' || tag === 'health');
    return { weight: isPlain ? 1 : 4, arbitrary: planOf(contract, route) };
  });
  return fc.oneof(...routes);
}

function planOf(
  contract: ApiContract,
  { path, method, operation }: { path: string; method: string; operation: Operation },
): fc.Arbitrary<Plan> {
  const parameters = (operation.parameters ?? []).map((given) =>
    '$ref' in given ? (contract.resolve(given.$ref) as ParameterObject) : given,
  );
  const named = parameters.filter((parameter) => parameter.in === 'path');
  const thing = (name: string) => knownText(method === 'delete' ? `${SPARE}${name}` : name);
  return fc.record({
    operationId: fc.constant(operation.operationId),
    method: mostly(
      fc.constant(method.toUpperCase()),
      method === 'get' ? fc.constant('HEAD') : fc.constantFrom(...METHODS),
    ),
    path: fc.constant(path),
    segments: fc.record(Object.fromEntries(named.map(({ name }) => [name, mostly(thing(name), hostileText)]))),
    query: queryOf(
      contract,
      parameters.filter((parameter) => parameter.in === 'query'),
    ),
    rawQuery: mostly(
      fc.constant(''),
      fc.constantFrom(
        '%',
        '%00',
        'q=%ED%A0%80',
        'limit=1&limit=2',
        '&&&=',
        `q=${'a'.repeat(9_000)}`,
        '[]=1',
        'limit',
        '%zz=1',
      ),
    ),
    headers: headersOf(parameters.some(({ name }) => name === 'Idempotency-Key')),
    auth: authOf(operation),
    body: bodyOf(contract, operation),
  });
}

function queryOf(contract: ApiContract, parameters: readonly ParameterObject[]): fc.Arbitrary<Plan['query']> {
  const given = parameters.map(({ name, required, schema }): fc.Arbitrary<Plan['query']> => {
    const value = valuesOf(contract, schema, name).map(String);
    const pair = mostly(value, hostileText).map((text): Plan['query'] => [[name, text]]);
    const present = required ? 20 : 1;
    return fc.oneof(
      { weight: present, arbitrary: pair },
      { weight: required ? 1 : 2, arbitrary: fc.constant<Plan['query']>([]) },
    );
  });
  const unknown = mostly(
    fc.constant<Plan['query']>([]),
    fc.tuple(hostileText, hostileText).map((pair): Plan['query'] => [pair]),
  );
  return fc.tuple(...given, unknown).map((parts) => parts.flat());
}

/** Header characters that the HTTP library of the client can send. */
const headerText = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code === 0x7f ? 0x20 : code)),
  maxLength: 40,
});

function headersOf(isIdempotent: boolean): fc.Arbitrary<Plan['headers']> {
  const maybe = (name: string, value: fc.Arbitrary<string>, weight = 10) =>
    fc.oneof(
      { weight: 120, arbitrary: fc.constant<Plan['headers']>([]) },
      { weight, arbitrary: value.map((text): Plan['headers'] => [[name, text]]) },
    );
  const keys = fc.oneof(fc.constantFrom('k1', 'k2', 'k3', '', 'x'.repeat(256)), fc.uuid(), headerText);
  return fc
    .tuple(
      maybe('X-Request-Id', fc.oneof(fc.constantFrom('mine', '', 'x'.repeat(200)), headerText)),
      maybe('If-None-Match', fc.oneof(fc.constantFrom('*', 'W/"x"', '"', '"a", W/"b"'), headerText)),
      maybe('Accept-Encoding', fc.constantFrom('gzip', 'br', 'identity;q=0', '*;q=0', 'nonsense', 'gzip;q=2,,br')),
      maybe('Accept', fc.constantFrom('text/html', '*/*;q=0', '', 'text/csv', 'text/csv;q=0.5, */*'), 30),
      maybe('Content-Encoding', fc.constantFrom('gzip', 'identity', 'br')),
      maybe('Origin', fc.constantFrom('https://evil.example', 'null')),
      maybe('Expect', fc.constantFrom('nonsense', '')),
      maybe('X-Forwarded-For', fc.constantFrom('127.0.0.1', 'x')),
      maybe('X-Long', fc.constant('a'.repeat(20_000)), 1),
      maybe('Idempotency-Key', keys, isIdempotent ? 60 : 10),
    )
    .map((parts) => parts.flat());
}

function authOf({ security = [] }: Operation): fc.Arbitrary<Plan['auth']> {
  const [scheme] = security.flatMap((one) => Object.keys(one));
  const right = scheme === 'bearer' ? 'Authorization' : 'X-API-Key';
  const wrong = scheme === 'bearer' ? 'X-API-Key' : 'Authorization';
  if (scheme === undefined) return fc.constantFrom<Plan['auth'][]>([], [{ header: 'Authorization', value: 'x' }]);
  return fc.oneof(
    { weight: 40, arbitrary: fc.constant<Plan['auth']>([{ header: right, value: { key: 'full' } }]) },
    {
      weight: 5,
      arbitrary: fc.constantFrom(...KEY_NAMES).map((key): Plan['auth'] => [{ header: right, value: { key } }]),
    },
    { weight: 1, arbitrary: fc.constant<Plan['auth']>([]) },
    { weight: 1, arbitrary: fc.constant<Plan['auth']>([{ header: wrong, value: { key: 'full' } }]) },
    { weight: 1, arbitrary: headerText.map((value): Plan['auth'] => [{ header: right, value }]) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom('Basic b3BzOng=', 'Bearer', 'Bearer a b', 'ow_live_x_y', `Bearer ${'x'.repeat(400)}`)
        .map((value): Plan['auth'] => [{ header: right, value }]),
    },
  );
}

const CONTENT_TYPES = [
  'text/plain',
  'application/jsonp',
  'application/json; charset=latin1',
  '',
  'multipart/form-data',
];

function bodyOf(contract: ApiContract, { requestBody }: Operation): fc.Arbitrary<PlannedBody> {
  const none = fc.constant<PlannedBody>({ kind: 'none' });
  const raw = fc
    .oneof(
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom('{', '', '\ufeff{}', '{"a":1}}', `"${'x'.repeat(66_000)}"`, '['.repeat(5_000), '{"price":1e999}')
        .map(Buffer.from),
    )
    .map((bytes): PlannedBody => ({ kind: 'raw', base64: bytes.toString('base64') }));
  if (!requestBody) return mostly(none, raw);
  const schema = requestBody.content['application/json']?.schema as JsonSchema;
  const { example } = requestBody.content['application/json'] as { example?: Record<string, unknown> };
  // Random values seldom meet the rules between fields, for example those of the conditions of alerts.
  const valid = fc.oneof(
    { weight: 4, arbitrary: valuesOf(contract, schema) as fc.Arbitrary<Record<string, unknown>> },
    { weight: example === undefined ? 0 : 1, arbitrary: fc.constant(example ?? {}) },
  );
  const json = (value: fc.Arbitrary<unknown>) => value.map((given): PlannedBody => ({ kind: 'json', value: given }));
  const names = Object.keys((schema.properties ?? {}) as object);
  const name = names.length > 0 ? fc.constantFrom(...names) : hostileText;
  return mostly(
    json(valid),
    json(fc.tuple(valid, name, hostileJson).map(([body, key, value]) => ({ ...body, [key]: value }))),
    json(fc.tuple(valid, hostileText, hostileJson).map(([body, key, value]) => ({ ...body, [key]: value }))),
    json(
      fc
        .tuple(valid, name)
        .map(([body, key]) => Object.fromEntries(Object.entries(body).filter(([other]) => other !== key))),
    ),
    json(hostileJson),
    raw,
    none,
  );
}

/** The content type of a body, mostly the right one. */
export const contentTypes: fc.Arbitrary<string> = fc.oneof(
  { weight: 40, arbitrary: fc.constantFrom('application/json', 'application/json; charset=utf-8') },
  { weight: 1, arbitrary: fc.constantFrom(...CONTENT_TYPES) },
);
