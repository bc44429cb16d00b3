import { join } from 'node:path';
import { DOCS_CSS } from '../docs/css.ts';
import { type ReferenceDocument, referencePage } from '../docs/reference-page.ts';
import { ApiError } from '../errors.ts';
import type { AnswerDeps } from '../http/deps.ts';
import { fileRoute, type Route } from '../http/route.ts';
import { fileOnDisk, packageRoot, StaticFile, sendFile } from '../http/static-file.ts';
import { asyncApiDocument } from '../openapi/asyncapi.ts';
import { openApiDocument } from '../openapi/document.ts';
import type { ReadDeps } from '../reads/read-deps.ts';
import { marketVenues } from './market-scope.ts';

const MAX_AGE_SECONDS = 300;

type DocumentDeps = Pick<ReadDeps, 'venues'> & Pick<AnswerDeps, 'decimalFormat'>;

/** The served document of these routes. It depends on the configuration only, so all processes serve the same text. */
export function openApiText(deps: DocumentDeps, routes: readonly Route[]): string {
  const contracts = routes.map(({ contract }) => contract);
  return JSON.stringify(openApiDocument(contracts, { decimalFormat: deps.decimalFormat, venues: marketVenues(deps) }));
}

/** GET /openapi.json: the document of these routes and of itself, generated at the first request. `routes` may grow until then. */
export function openApiRoute(deps: DocumentDeps, routes: readonly Route[]): { route: Route; file: StaticFile } {
  const file = new StaticFile('application/json; charset=utf-8', MAX_AGE_SECONDS, () =>
    openApiText(deps, [...routes, route]),
  );
  const route = fileRoute(
    {
      path: '/openapi.json',
      operationId: 'getOpenApi',
      summary: 'This document',
      description: 'Generated from the schemas that check requests and answers.',
      tag: 'contract',
      answer: { description: 'OpenAPI 3.1.', mediaTypes: ['application/json'] },
    },
    (ctx) => sendFile(ctx, file),
  );
  return { route, file };
}

/** The served document. It depends on the configuration only, so all processes serve the same text. */
export function asyncApiText(deps: DocumentDeps): string {
  return JSON.stringify(asyncApiDocument({ decimalFormat: deps.decimalFormat, venues: marketVenues(deps) }));
}

/** GET /asyncapi.json: the document of the streams, generated at the first request. */
export function asyncApiRoute(deps: DocumentDeps): Route {
  const file = new StaticFile('application/json; charset=utf-8', MAX_AGE_SECONDS, () => asyncApiText(deps));
  return fileRoute(
    {
      path: '/asyncapi.json',
      operationId: 'getAsyncApi',
      summary: 'The document of the streams',
      description: 'Generated from the schemas of the messages.',
      tag: 'contract',
      answer: { description: 'AsyncAPI 3.', mediaTypes: ['application/json'] },
    },
    (ctx) => sendFile(ctx, file),
  );
}

const PAGE_SECONDS = 300;

/** The page loads only its own files, and sends requests only to this server. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** GET /docs: the document of `/openapi.json` as a page, made at the first request, and the files of the page. */
export function docsRoutes(openApi: StaticFile): Route[] {
  const page = new StaticFile('text/html; charset=utf-8', PAGE_SECONDS, () =>
    referencePage(JSON.parse(openApi.content.bytes.toString()) as ReferenceDocument),
  );
  const files = new Map([
    ['page.css', new StaticFile('text/css; charset=utf-8', PAGE_SECONDS, () => DOCS_CSS)],
    [
      'page.js',
      fileOnDisk(join(packageRoot(), 'api/docs/assets/reference.js'), 'text/javascript; charset=utf-8', PAGE_SECONDS),
    ],
  ]);
  return [
    fileRoute(
      {
        path: '/docs',
        operationId: 'getDocs',
        summary: 'Page to read this document and to try the routes',
        description: 'HTML. Enter a key on the page to try the routes.',
        tag: 'contract',
        answer: { description: 'The page.', mediaTypes: ['text/html'] },
      },
      (ctx) => {
        ctx.set('Content-Security-Policy', CONTENT_SECURITY_POLICY);
        sendFile(ctx, page);
      },
    ),
    fileRoute(
      {
        path: '/docs/:file',
        operationId: 'getDocsFile',
        summary: 'A file of the page',
        description: 'The page names its files; clients need none of them.',
        tag: 'contract',
        answer: { description: 'The file.', mediaTypes: ['text/css', 'text/javascript'] },
      },
      (ctx, { file: name }) => {
        const file = files.get(name);
        if (!file) throw new ApiError('not_found', 'no such file');
        sendFile(ctx, file);
      },
    ),
  ];
}
