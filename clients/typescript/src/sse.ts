/** An event of a stream of server-sent events. */
export interface SseEvent {
  type: string;
  /** The id of the last event that had one. */
  id: string;
  data: string;
}

/** Splits a stream of server-sent events, however its bytes arrive. */
export class SseParser {
  readonly #decoder = new TextDecoder();
  #rest = '';
  #id = '';
  #type = '';
  #data: string[] = [];

  /** The events that these bytes complete. */
  push(bytes: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split(/\r\n|\n/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (this.#data.length > 0) events.push({ type: this.#type, id: this.#id, data: this.#data.join('\n') });
        this.#type = '';
        this.#data = [];
        continue;
      }
      const colon = line.indexOf(':');
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (name === 'id') this.#id = value;
      else if (name === 'event') this.#type = value;
      else if (name === 'data') this.#data.push(value);
    }
    return events;
  }
}
