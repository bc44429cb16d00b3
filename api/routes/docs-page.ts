import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { DOCS_CSS } from '../docs/css.ts';
import { docsHeader } from '../docs/frame.ts';
import { ApiError } from '../errors.ts';
import { fileRoute, type Route } from '../http/route.ts';
import { fileOnDisk, StaticFile, sendFile } from '../http/static-file.ts';

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';
const PAGE_SECONDS = 300;
const FILE_SECONDS = 86_400;

/** The page loads only its own files. Its style sheet has icons with `data:` addresses. */
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

const PAGE = `<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>API reference · oddswire</title>
    <link rel="icon" href="/docs/favicon-32x32.png">
    <link rel="stylesheet" href="/docs/swagger-ui.css">
    <link rel="stylesheet" href="/docs/page.css">
  </head>
  <body>
    ${docsHeader('/docs')}
    <div id="swagger-ui"></div>
    <noscript>This page needs scripts. The document is at <a href="/openapi.json">/openapi.json</a>.</noscript>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/page.js"></script>
  </body>
</html>
`;
/** Without the validator, which is a third party. */
const PAGE_SCRIPT = `const dark = matchMedia('(prefers-color-scheme: dark)');
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', paint);
paint();
window.ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  requestSnippetsEnabled: true,
  requestSnippets: {
    generators: {
      curl_bash: { title: 'curl', syntax: 'bash' },
      typescript: { title: 'TypeScript', syntax: 'javascript' },
    },
    defaultExpanded: true,
    languages: ['curl_bash', 'typescript'],
  },
  plugins: [{ fn: { requestSnippetGenerator_typescript: typescriptOf } }],
});

// A request that was tried, as a call of fetch.
function typescriptOf(request) {
  const { url, method, headers = {}, body } = request.toJS();
  const lines = ['  method: ' + JSON.stringify(method), '  headers: ' + JSON.stringify(headers)];
  if (body) lines.push('  body: ' + JSON.stringify(typeof body === 'string' ? body : JSON.stringify(body)));
  return 'const answer = await fetch(' + JSON.stringify(url) + ', {\\n' + lines.join(',\\n') + ',\\n});\\nconsole.log(await answer.json());';
}
`;

/** GET /docs: Swagger UI over /openapi.json, without files from another host. Locates the files of the library once. */
export function docsRoutes(): Route[] {
  const page = new StaticFile(HTML, PAGE_SECONDS, () => PAGE);
  const files = docsFiles();
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
        answer: { description: 'The file.', mediaTypes: ['text/css', 'text/javascript', 'image/png'] },
      },
      (ctx, { file: name }) => {
        const file = files.get(name);
        if (!file) throw new ApiError('not_found', 'no such file');
        sendFile(ctx, file);
      },
    ),
  ];
}

function docsFiles(): Map<string, StaticFile> {
  const library = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  const ofLibrary = (name: string, type: string): [string, StaticFile] => [
    name,
    fileOnDisk(join(library, name), type, FILE_SECONDS),
  ];
  return new Map([
    ofLibrary('swagger-ui.css', CSS),
    ofLibrary('swagger-ui-bundle.js', SCRIPT),
    ofLibrary('favicon-32x32.png', 'image/png'),
    ['page.css', new StaticFile(CSS, PAGE_SECONDS, () => DOCS_CSS)],
    ['page.js', new StaticFile(SCRIPT, PAGE_SECONDS, () => PAGE_SCRIPT)],
  ]);
}
