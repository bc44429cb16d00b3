import { get, type IncomingMessage, type RequestOptions } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { ApiContract, type OpenApi, type ParameterObject } from '../../../support/api-contract.ts';
import { textOf } from '../../../support/html-text.ts';
import { type Answer, useTestApi } from '../api-harness.ts';

const api = useTestApi();
let page: Answer;

beforeAll(async () => {
  page = await api.call('/docs');
});

/** The files that the page loads. */
const loaded = () =>
  [...page.text.matchAll(/<(?:link|script|img|iframe)\b[^>]*\b(?:href|src)="([^"]*)"/g)].map(([, to = '']) => to);

describe('/docs', () => {
  it('is a page without inline scripts or styles', () => {
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bon\w+=|style=|javascript:/i);
  });

  it('has a policy that allows only local files', () => {
    const policy = new Map(
      (page.headers.get('content-security-policy') ?? '').split('; ').map((directive) => {
        const [name = '', ...sources] = directive.split(' ');
        return [name, sources.join(' ')];
      }),
    );
    expect(policy.get('default-src')).toBe("'none'");
    for (const name of ['script-src', 'style-src', 'connect-src']) expect(policy.get(name)).toBe("'self'");
    expect(policy.get('img-src')).toBe("'self' data:");
    for (const name of ['base-uri', 'form-action', 'frame-ancestors']) expect(policy.get(name)).toBe("'none'");
  });

  it('loads only local files, which browsers cache and revalidate with 304', async () => {
    const paths = loaded();
    expect(paths).toEqual(['data:,', '/docs/page.css', '/docs/page.js']);
    for (const path of paths.slice(1)) {
      const answer = await fetch(`${api.url}${path}`, { headers: { 'Accept-Encoding': 'gzip' } });
      const body = Buffer.from(await answer.arrayBuffer());
      const type = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' };
      const extension = path.slice(path.lastIndexOf('.') + 1) as keyof typeof type;
      expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 200, type[extension]]);
      expect(answer.headers.get('cache-control')).toMatch(/^public, max-age=\d+$/);
      expect(answer.headers.get('content-encoding')).toBe('gzip');
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
      const etag = answer.headers.get('etag') ?? '';
      const plain = await fetch(`${api.url}${path}`, { headers: { 'Accept-Encoding': 'identity' } });
      expect(plain.headers.get('content-encoding')).toBeNull();
      expect([plain.headers.get('etag'), body.equals(Buffer.from(await plain.arrayBuffer()))]).toEqual([etag, true]);
      const again = await fetch(`${api.url}${path}`, { headers: { 'If-None-Match': etag } });
      expect([again.status, await again.text()]).toEqual([304, '']);
    }
  });

  it('transfers less than 100 KB with all its files', async () => {
    let transferred = 0;
    for (const path of ['/docs', ...loaded().slice(1)]) transferred += await transferOf(path);
    expect(transferred).toBeGreaterThan(10_000);
    expect(transferred).toBeLessThan(100_000);
  });

  it('shows every operation, event, schema, parameter and error of the document', async () => {
    const document = JSON.parse((await api.call('/openapi.json')).text) as OpenApi;
    const contract = new ApiContract(JSON.stringify(document));
    const ids = idsOf(page.text);
    for (const paths of [document.paths, document.webhooks]) {
      for (const [path, operations] of Object.entries(paths)) {
        for (const operation of Object.values(operations)) {
          const entry = textOf(entryOf(operation.operationId));
          const said = [path, ...Object.keys(operation.responses)];
          for (const given of operation.parameters ?? []) said.push(resolved(contract, given).name);
          for (const word of said)
            expect([operation.operationId, entry]).toEqual([operation.operationId, expect.stringContaining(word)]);
        }
      }
    }
    for (const name of Object.keys(document.components.schemas)) expect(ids).toContain(`schema-${name}`);
    expect(page.text).not.toMatch(/undefined|\[object |NaN/);
  });

  it('has an own id for each target, and links only to targets that exist', () => {
    const ids = idsOf(page.text);
    expect(new Set(ids).size).toBe(ids.length);
    const links = [...page.text.matchAll(/<a [^>]*href="#([^"]+)"/g)].map(([, to = '']) => to);
    expect(links.length).toBeGreaterThan(200);
    expect(links.filter((to) => !ids.includes(to))).toEqual([]);
  });

  it('has a form with each parameter and the example of the body, with the header of its key', () => {
    const markets = entryOf('listMarkets');
    expect(markets).toContain('data-method="GET" data-path="/v1/{venue}/markets" data-key="Authorization"');
    expect(markets).toContain('name="path.venue" value="all"');
    expect(markets).toMatch(/<select name="query.sort">(<option>\w*<\/option>)+<\/select>/);
    const create = entryOf('createAlert');
    expect(create).toContain('data-method="POST" data-path="/v1/alerts" data-key="X-API-Key"');
    expect(create).toMatch(/<textarea name="body"[^>]*>\{[^<]*&#34;condition&#34;: &#34;above&#34;/);
    expect(entryOf('receive_price_alert')).not.toContain('<form');
  });

  it('states each choice of a parameter with several values once', () => {
    const entry = textOf(entryOf('listMarkets'));
    expect(entry).toContain(
      'status one or several of created , open , halted , closed , resolved , settled , unopened , active , paused ',
    );
    expect(entry).not.toContain('list of one of');
  });

  it('links a page of the guides that a description names', () => {
    expect(entryOf('createAlert')).toContain('<a href="/docs/read/alerts">docs/alerts.md</a>');
  });

  it.each([
    'index.html',
    'reference.js',
    'swagger-ui.css',
    'swagger-ui-bundle.js',
    'package.json',
    '..%2fpackage.json',
    '%2e%2e',
    'constructor',
    '__proto__',
  ])('has no file %s', async (name) => {
    const answer = await api.call(`/docs/${name}`);
    expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found']);
  });
});

const idsOf = (text: string) => [...text.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id);

/** The markup of an entry of the page. */
function entryOf(id: string): string {
  const [, after = ''] = page.text.split(`<details class="entry" id="${id}">`);
  const [entry = ''] = after.split('<details class="entry"');
  return entry;
}

function resolved(contract: ApiContract, given: unknown): ParameterObject {
  const isReference = typeof given === 'object' && given !== null && '$ref' in given;
  return (isReference ? contract.resolve(String(given.$ref)) : given) as ParameterObject;
}

async function transferOf(path: string): Promise<number> {
  const answer = await request(`${api.url}${path}`, { headers: { 'Accept-Encoding': 'gzip' } });
  return (await buffer(answer)).length;
}

/** The bytes as sent: `fetch` decompresses them. */
function request(url: string, options: RequestOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => get(url, options, resolve).once('error', reject));
}
