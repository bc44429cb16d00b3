import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, startTestApi, type TestApi } from '../api-harness.ts';

let api: TestApi;
let page: Answer;

beforeAll(async () => {
  api = await startTestApi();
  page = await api.call('/docs');
});
afterAll(() => api.close());

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
    expect(paths).toHaveLength(5);
    for (const path of paths) {
      expect(path).toMatch(/^\/docs\/[\w.-]+$/);
      const answer = await fetch(`${api.url}${path}`, { headers: { 'Accept-Encoding': 'gzip' } });
      const body = Buffer.from(await answer.arrayBuffer());
      const type = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', png: 'image/png' };
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

  it('shows /openapi.json and uses no validator', async () => {
    const { text } = await api.call('/docs/page.js');
    expect(text).toContain("url: '/openapi.json'");
    expect(text).toContain('validatorUrl: null');
    expect(text).not.toMatch(/https?:/);
  });

  it.each([
    'index.html',
    'swagger-ui.css.map',
    'swagger-ui-bundle.js.map',
    'package.json',
    '..%2fpackage.json',
    '%2e%2e',
    'swagger-initializer.js',
    'constructor',
    '__proto__',
  ])('has no file %s', async (name) => {
    const answer = await api.call(`/docs/${name}`);
    expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found']);
  });
});
