import { join } from 'node:path';
import { DOCS_CSS } from '../docs/css.ts';
import { type ReferenceDocument, referencePage } from '../docs/reference-page.ts';
import { ApiError } from '../errors.ts';
import { fileRoute, type Route } from '../http/route.ts';
import { fileOnDisk, packageRoot, StaticFile, sendFile } from '../http/static-file.ts';

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
