import { copiedText } from '../kit/attempts.ts';
import { type Html, type HtmlValue, html } from '../kit/html.ts';
import { prettyJson } from '../kit/pretty-json.ts';
import type { ApiCall } from './api-calls.ts';
import type { ConsoleRequest } from './route.ts';

interface Example {
  /** The calls behind the page, with a word for each. */
  calls: readonly (readonly [comment: string, call: ApiCall])[];
  /** The same with the TypeScript client. */
  typescript: string;
  /** The same with the Python client. */
  python: string;
  /** An answer of the first call. */
  json: string;
}

/** The same data in a program: curl, the clients, and the answer. The key stays out of it. */
export function programExamples({ shown, origin }: Pick<ConsoleRequest, 'shown' | 'origin'>, example: Example): Html {
  const curl = example.calls.map(([comment, call], index) => {
    const { method, target, header, body } = shown(call);
    const key = header === 'Authorization' ? '"Authorization: Bearer $KEY"' : '"X-API-Key: $KEY"';
    const write = method === 'GET' ? '' : ` -X ${method}`;
    const sent = body === undefined ? '' : ` -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'`;
    const address = html`"<span data-origin>${origin}</span>${target}"`;
    return html`${index === 0 ? '' : '\n'}# ${comment}\ncurl${write} -H ${key}${sent} ${address}`;
  });
  const client = html`import { createClient } from '@oddswire/client';

const client = createClient({ baseUrl: '<span data-origin>${origin}</span>', apiKey: key });
${example.typescript}`;
  const python = html`from oddswire import Oddswire

client = Oddswire("<span data-origin>${origin}</span>", key)
${example.python}`;
  return html`<section class="program" aria-labelledby="program-title"><h2 id="program-title">This data in a program</h2>
${tab('curl', 'curl', curl, { isOpen: true })}${tab('typescript', 'TypeScript', client)}${tab('python', 'Python', python)}${tab('json', 'JSON', pretty(example.json))}</section>`;
}

/** A part of a section `program`, with a button that copies its text. Only one part of a group is open. `name`: of the text; default: the label. */
export function tab(
  id: string,
  label: string,
  text: HtmlValue,
  options: { isOpen?: boolean; group?: string; hint?: string; name?: string } = {},
): Html {
  const { isOpen = false, group = 'program', hint, name = label } = options;
  return html`<details name="${group}"${isOpen && html` open`}><summary>${label}</summary>
${copiedText({ id: `program-${id}`, label: name, text, isCopied: true, hint })}</details>`;
}

/** A text in quotes for TypeScript. */
export function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/** A text in quotes for Python, which reads the escapes of JSON. */
export function quotedForPython(text: string): string {
  return JSON.stringify(text);
}

const MAX_SHOWN = 4_000;

/** Indented JSON with the digits of the answer. */
function pretty(text: string): string {
  const indented = prettyJson(text);
  return indented.length > MAX_SHOWN ? `${indented.slice(0, MAX_SHOWN)}\n…` : indented;
}
