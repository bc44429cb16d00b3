import { html } from 'ghtml';
import { ERROR_MEANINGS } from '../contract/error.ts';
import { docsPage } from './frame.ts';
import { renderMarkdown } from './markdown.ts';
import { fieldRow, fieldRows, type JsonSchema, schemaBody, typeOf, withCode } from './schema-markup.ts';

interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  schema: JsonSchema;
  example?: unknown;
}

interface Content {
  schema: JsonSchema;
  example?: unknown;
  examples?: Readonly<Record<string, { value: unknown }>>;
}

interface Answer {
  description: string;
  headers?: Readonly<Record<string, { $ref?: string }>>;
  content?: Readonly<Record<string, Content>>;
}

interface Operation {
  operationId: string;
  tags: readonly string[];
  summary: string;
  description: string;
  deprecated?: boolean;
  security: readonly Readonly<Record<string, unknown>>[];
  'x-scope'?: string;
  parameters?: readonly (Parameter | { $ref: string })[];
  requestBody?: { required?: boolean; content: Readonly<Record<string, Content>> };
  responses: Readonly<Record<string, Answer | { $ref: string }>>;
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** The parts of the OpenAPI document that the page shows. */
export interface ReferenceDocument {
  info: { version: string; description: string };
  tags: readonly { name: string; description: string }[];
  paths: Paths;
  webhooks: Paths;
  components: {
    schemas: Readonly<Record<string, JsonSchema>>;
    responses: Readonly<Record<string, Answer>>;
    parameters: Readonly<Record<string, Parameter>>;
    headers: Readonly<Record<string, { description?: string; schema?: JsonSchema }>>;
  };
}

/** An operation with its place. */
interface Placed {
  method: string;
  path: string;
  operation: Operation;
  isEvent: boolean;
}

const JSON_TYPE = 'application/json';
/** Headers that a person does not set to try a route. */
const UNTRIED = new Set(['X-Request-Id', 'If-None-Match']);

/** The page /docs: the whole document as markup, which needs no script to be read. The script searches it and sends requests. */
export function referencePage(document: ReferenceDocument): string {
  const placed = [...placedOf(document.paths, false), ...placedOf(document.webhooks, true)];
  const sections = document.tags
    .map(({ name, description }) => ({
      name,
      description,
      within: placed.filter(({ operation }) => operation.tags.includes(name)),
    }))
    .filter(({ within }) => within.length > 0);
  const schemas = Object.entries(document.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  const headers = Object.entries(document.components.headers);
  const main = html`<h1>API reference</h1>
<div class="intro">!${renderMarkdown(document.info.description, (target) => target).body}
<p>Version ${document.info.version}. <a href="/docs/read/api">The guide</a> explains the rules, and <a href="/openapi.json">openapi.json</a> is this document for programs.</p></div>
<form class="key"><label for="key">API key for the requests of this page</label>
<input id="key" type="password" autocomplete="off" spellcheck="false" aria-describedby="key-note">
<p id="key-note">The page sends it to this server only and forgets it when you leave.</p></form>
<noscript><p>Without scripts the page can be read; it cannot search or send requests.</p></noscript>
<p class="found" role="status"></p>
!${sections
    .map(({ name, description, within }) => {
      return html`<section class="group" aria-labelledby="tag-${name}"><h2 id="tag-${name}">${title(name)}</h2>
<p>!${withCode(description)}</p>
!${within.map((each) => operationMarkup(each, document)).join('\n')}</section>`;
    })
    .join('\n')}
<section class="group" aria-labelledby="schemas"><h2 id="schemas">Schemas</h2>
!${schemas.map(([name, schema]) => html`<details class="entry" id="schema-${name}"><summary><h3>${name}</h3></summary>!${schemaBody(schema)}</details>`).join('\n')}</section>
<section class="group" aria-labelledby="errors"><h2 id="errors">Errors</h2>
<dl class="fields">!${Object.entries(ERROR_MEANINGS)
    .map(([code, meaning]) => html`<dt><code>${code}</code></dt><dd>!${withCode(meaning)}</dd>`)
    .join('')}</dl></section>
<section class="group" aria-labelledby="headers"><h2 id="headers">Headers of answers</h2>
<dl class="fields">!${headers.map(([name, { schema = {}, description }]) => fieldRow(name, schema, false, description)).join('')}</dl></section>`;
  const aside = html`<form class="search" role="search"><label for="search">Search</label>
<input id="search" type="search" autocomplete="off" placeholder="path, name or field"></form>
<details open><summary>Contents</summary><nav aria-label="Contents">!${sections.map(({ name, within }) => contentsOf(name, within)).join('\n')}
<p class="tag"><a href="#schemas">Schemas</a></p>
<ul>!${schemas.map(([name]) => html`<li><a href="#schema-${name}">${name}</a></li>`).join('')}</ul>
</nav></details>`;
  return docsPage({ title: 'API reference', section: '/docs', body: main, aside, script: '/docs/page.js' });
}

function placedOf(paths: Paths, isEvent: boolean): Placed[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
      isEvent,
    })),
  );
}

function title(tag: string): string {
  return `${tag.charAt(0).toUpperCase()}${tag.slice(1)}`;
}

function contentsOf(tag: string, within: readonly Placed[]): string {
  const links = within.map(
    ({ method, path, isEvent, operation }) =>
      html`<li><a href="#${operation.operationId}"><span class="method">${isEvent ? 'event' : method}</span> ${isEvent ? path : operation.summary}</a></li>`,
  );
  return html`<p class="tag"><a href="#tag-${tag}">${title(tag)}</a></p>
<ul>!${links.join('')}</ul>`;
}

function operationMarkup(placed: Placed, document: ReferenceDocument): string {
  const { method, path, operation, isEvent } = placed;
  const { operationId, summary, description, deprecated, responses, requestBody } = operation;
  const parameters = (operation.parameters ?? [])
    .map((given) => ('$ref' in given ? document.components.parameters[nameOf(given.$ref)] : given))
    .filter((each) => each !== undefined);
  const answers = Object.entries(responses).map(
    ([status, given]) => [status, '$ref' in given ? document.components.responses[nameOf(given.$ref)] : given] as const,
  );
  const [good, bad] = [answers.filter(([status]) => status < '400'), answers.filter(([status]) => status >= '400')];
  const body = requestBody?.content[JSON_TYPE];
  return html`<details class="entry" id="${operationId}"><summary><h3><span class="method">${isEvent ? 'event' : method}</span> <code>${path}</code></h3> <span class="summary">${summary}</span>!${deprecated ? ' <span class="required">deprecated</span>' : ''}</summary>
<p>!${withCode(description)}</p>
<p class="type">!${accessOf(operation, isEvent)} Operation <code>${operationId}</code>.</p>
!${
    parameters.length > 0 &&
    html`<h4>${isEvent ? 'Headers of the request' : 'Parameters'}</h4>
<dl class="fields">!${parameters.map((each) => fieldRow(each.name, each.schema, each.required ?? false, `${PLACES[each.in]} ${each.description ?? ''}`.trim())).join('')}</dl>`
  }
!${body && html`<h4>Body</h4>!${bodyFields(body.schema)}!${examplesOf(body, 'Example of the body')}`}
<h4>Answers</h4>
<dl class="fields">!${good.map(([status, answer]) => (answer === undefined ? '' : answerRow(status, answer))).join('')}</dl>
!${good.flatMap(([status, answer]) => Object.entries(answer?.content ?? {}).map(([type, content]) => examplesOf(content, `Example of ${status}${type === JSON_TYPE ? '' : ` as ${type}`}`))).join('')}
!${bad.length > 0 && html`<p class="type"><a href="#errors">Errors</a>: ${bad.map(([status, answer]) => `${status} ${codesOf(answer)}`.trim()).join(', ')}.</p>`}
!${!isEvent && tryForm(placed, parameters, body)}</details>`;
}

/** The query is the usual place. */
const PLACES: Readonly<Record<Parameter['in'], string>> = { path: 'In the path.', header: 'A header.', query: '' };

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}

function accessOf({ security, 'x-scope': scope }: Operation, isEvent: boolean): string {
  if (isEvent) return 'oddswire sends this request to your webhook.';
  const header = headerOf(security);
  return header === undefined ? 'No key.' : html`Key in <code>${header}</code>, scope <code>${scope ?? ''}</code>.`;
}

/** The header of the key; absent for an open route. */
function headerOf(security: Operation['security']): 'Authorization' | 'X-API-Key' | undefined {
  const [scheme] = Object.keys(security[0] ?? {});
  if (scheme === undefined) return undefined;
  return scheme === 'bearer' ? 'Authorization' : 'X-API-Key';
}

function bodyFields(schema: JsonSchema): string {
  const rows = fieldRows(schema);
  return rows === '' ? `<p class="type">${typeOf(schema)}</p>` : `<dl class="fields">${rows}</dl>`;
}

function answerRow(status: string, { description, content = {}, headers = {} }: Answer): string {
  const types = Object.entries(content).map(([type, { schema }]) =>
    type === JSON_TYPE ? dataType(schema) : html`<code>${type}</code> !${schema === undefined ? '' : typeOf(schema)}`,
  );
  const names = Object.keys(headers).join(', ');
  return html`<dt><code>${status}</code> <span class="type">!${types.join(' or ')}</span></dt><dd>!${withCode(description)}!${names !== '' && html` <a href="#headers">Headers</a>: ${names}.`}</dd>`;
}

/** Each code of an error answer has an example. */
function codesOf(answer: Answer | undefined): string {
  return Object.values(answer?.content ?? {})
    .flatMap(({ examples = {} }) => Object.keys(examples))
    .join(' or ');
}

/** The type of `data` in the envelope of success, which every JSON answer has. */
function dataType(schema: JsonSchema): string {
  const data = schema.properties?.['data'];
  return data === undefined ? typeOf(schema) : html`<code>data</code>: !${typeOf(data)}`;
}

function examplesOf({ example, examples = {} }: Content, label: string): string {
  const named = Object.entries(examples).map(([name, { value }]) => [`${label}: ${name}`, value] as const);
  return [...(example === undefined ? [] : [[label, example] as const]), ...named]
    .map(
      ([text, value]) =>
        html`<details><summary>${text}</summary><pre tabindex="0"><code>${typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</code></pre></details>`,
    )
    .join('');
}

/** The form that the script sends. Without a script it is hidden. */
function tryForm(
  { method, path, operation }: Placed,
  parameters: readonly Parameter[],
  body: Content | undefined,
): string {
  const { security } = operation;
  const fields = parameters.filter(({ name }) => !UNTRIED.has(name)).map(fieldMarkup);
  if (body !== undefined)
    fields.push(
      html`<label>Body<textarea name="body" rows="8" spellcheck="false">${JSON.stringify(body.example ?? {}, null, 2)}</textarea></label>`,
    );
  return html`<details class="try"><summary>Try it</summary><form data-method="${method}" data-path="${path}" data-key="${headerOf(security) ?? ''}">
!${fields.join('\n')}<button type="submit">Send</button></form><div class="answer" aria-live="polite"></div></details>`;
}

function fieldMarkup({ in: place, name, required, schema, example }: Parameter): string {
  const key = `${place}.${name}`;
  const label = html`${name}!${required ? ' <span class="required">required</span>' : ''}`;
  if (schema.enum !== undefined && place === 'query') {
    const options = ['', ...schema.enum.map(String)].map((value) => html`<option>${value}</option>`);
    return html`<label>!${label}<select name="${key}">!${options.join('')}</select></label>`;
  }
  const shown = place === 'path' ? (example ?? schema.example ?? '') : '';
  const hint = place === 'path' ? '' : String(schema.default ?? example ?? schema.example ?? '');
  return html`<label>!${label}<input name="${key}" value="${String(shown)}" placeholder="${hint}" autocomplete="off" spellcheck="false"!${required ? ' required' : ''}></label>`;
}
