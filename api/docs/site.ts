import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { html } from 'ghtml';
import type { Middleware } from 'koa';
import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import type { ApiContext, ApiState } from '../context.ts';
import { methodNotAllowed } from '../http/paths.ts';
import { packageRoot, StaticFile, sendFile } from '../http/static-file.ts';
import { asyncApiDocument } from '../openapi/asyncapi.ts';
import { docsPage } from './frame.ts';
import { renderMarkdown } from './markdown.ts';
import { withCode } from './schema-markup.ts';

const HTML = 'text/html; charset=utf-8';
const PAGE_SECONDS = 300;
const READ = '/docs/read';
const IMAGES = '/docs/images';
const POLICY = `default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

interface DocsOptions {
  decimalFormat: DecimalFormat;
  venues: readonly string[];
}

/**
 * The pages of `docs/` below /docs/read, and the streams below /docs/streams. The document of the routes does not contain them, because
 * they are for people. An installation without `docs/` has no guides.
 */
export function docsSite(options: DocsOptions): Middleware<ApiState> {
  const files = new Map<string, StaticFile>();
  const folder = docsFolder();
  if (folder !== null) for (const name of markdownIn(folder)) files.set(addressOf(name), guide(folder, name));
  if (folder !== null && existsSync(join(folder, 'images')))
    for (const name of readdirSync(join(folder, 'images')).filter((each) => each.endsWith('.png')))
      files.set(
        `${IMAGES}/${name}`,
        new StaticFile('image/png', PAGE_SECONDS, () => readFileSync(join(folder, 'images', name))),
      );
  files.set(
    '/docs/streams',
    new StaticFile(HTML, PAGE_SECONDS, () =>
      docsPage({ title: 'Streams', section: '/docs/streams', body: streamsBody(asyncApiDocument(options)) }),
    ),
  );
  return async (ctx, next) => {
    const file = files.get(ctx.path);
    if (file === undefined) return next();
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD']);
    ctx.set('Content-Security-Policy', POLICY);
    sendFile(ctx as ApiContext, file);
  };
}

/** The folder `docs`; null for an installation without it. */
function docsFolder(): string | null {
  const docs = join(packageRoot(), 'docs');
  return existsSync(docs) ? docs : null;
}

/** Paths below `docs`, such as `guides/backtest.md`. */
function markdownIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => String(name).replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.md'))
    .sort();
}

function addressOf(name: string): string {
  return name === 'README.md' ? READ : `${READ}/${name.slice(0, -'.md'.length)}`;
}

function guide(folder: string, name: string): StaticFile {
  return new StaticFile(HTML, PAGE_SECONDS, () => {
    const { title, body } = renderMarkdown(readFileSync(join(folder, name), 'utf8'), (target) =>
      linkFrom(name, target),
    );
    const crumb = name === 'README.md' ? '' : `<p class="crumb"><a href="${READ}">All pages</a></p>`;
    return docsPage({ title, section: READ, body: crumb + body });
  });
}

/** The address of a link of a page; null for files of the repository outside `docs`, which this site does not have. */
function linkFrom(page: string, target: string): string | null {
  if (/^[a-z]+:/i.test(target) || target.startsWith('#') || target.startsWith('/')) return target;
  const [path = '', anchor] = target.split('#');
  const file = posix.normalize(posix.join(posix.dirname(page), path));
  if (file.startsWith('images/')) return `${IMAGES}/${file.slice('images/'.length)}`;
  if (file.startsWith('..') || !file.endsWith('.md')) return null;
  return `${addressOf(file)}${anchor === undefined ? '' : `#${anchor}`}`;
}

interface Schema {
  description?: string;
  properties?: Readonly<Record<string, unknown>>;
}

/** The parts of an AsyncAPI document that the page shows. */
interface StreamsDocument {
  channels: Readonly<
    Record<string, { address: string; title: string; description: string; messages: Readonly<Record<string, unknown>> }>
  >;
  components: { schemas: Readonly<Record<string, Schema>> };
}

const EXAMPLES: Readonly<Record<string, string>> = {
  marketStream: `curl -N -H "Authorization: Bearer $ODDSWIRE_KEY" "$ODDSWIRE_URL/v1/all/stream?channels=prices,trades"`,
  socket: `{"type":"auth","key":"ow_live_…"}
{"type":"subscribe","id":"a","venue":"all","channels":["prices"]}`,
  accountEvents: `curl -N -H "X-API-Key: $ODDSWIRE_KEY" "$ODDSWIRE_URL/v1/events/stream"`,
};

/** The streams of the AsyncAPI document as markup: each channel with a call and its messages. */
function streamsBody(document: object): string {
  const { channels, components } = document as StreamsDocument;
  const sections = Object.entries(channels).map(([name, { address, title, description, messages }]) => {
    const rows = Object.keys(messages).map(
      (message) =>
        html`<tr><td><a href="#${message}"><code>${message}</code></a></td><td>!${withCode(
          components.schemas[message]?.description ?? '',
        )}</td></tr>`,
    );
    return html`<h2 id="${name}">${title}</h2>
<p><code>${address}</code></p>
<p>!${withCode(description)}</p>
<pre tabindex="0"><code>${EXAMPLES[name] ?? address}</code></pre>
<div class="scroll" tabindex="0" role="region" aria-label="Messages of ${title}"><table><thead><tr><th>Message</th><th>Meaning</th></tr></thead>
<tbody>!${rows.join('')}</tbody></table></div>`;
  });
  const named = new Set(Object.values(channels).flatMap(({ messages }) => Object.keys(messages)));
  const schemas = [...named].map(
    (name) => html`<h3 id="${name}">${name}</h3>
<p>!${withCode(components.schemas[name]?.description ?? '')}</p>
<details><summary>Schema of ${name}</summary><pre tabindex="0"><code>${JSON.stringify(components.schemas[name] ?? {}, null, 2)}</code></pre></details>`,
  );
  return html`<h1>Streams</h1>
<p>Changes as they are stored, as server-sent events or over a WebSocket, and the events of an account.
<a href="/docs/read/live">Live output</a> explains how a client knows that it has everything,
<a href="/docs/read/guides/follow-prices">Follow prices</a> has a program, and <a href="/asyncapi.json">asyncapi.json</a> is the whole document.</p>
!${sections.join('\n')}
<h2 id="messages">Messages</h2>
!${schemas.join('\n')}`;
}
