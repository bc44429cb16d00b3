import { html } from 'ghtml';
import { withCode } from './schema-markup.ts';

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
export function streamsBody(document: object): string {
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
