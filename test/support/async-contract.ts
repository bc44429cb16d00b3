import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { closed } from './api-contract.ts';

interface AsyncDocument {
  channels: Record<string, { messages: Record<string, unknown> }>;
  components: { schemas: Record<string, { properties?: { type?: { const?: string } } }> };
}

export type StreamChannel = 'marketStream' | 'socket' | 'accountEvents';

const ID = 'asyncapi.json';

/** Reads the AsyncAPI document: whether a message follows it. Fields that the document does not name are problems. */
export class AsyncContract {
  readonly document: AsyncDocument;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(text: string) {
    this.document = JSON.parse(text) as AsyncDocument;
    formats.default(this.#ajv);
    this.#ajv.addFormat('decimal', true);
    this.#ajv.addSchema(closed({ ...(JSON.parse(text) as AsyncDocument), $id: ID }));
  }

  /** The differences between a message of a channel and the document. */
  problemsOf(channel: StreamChannel, text: string): string[] {
    const value = JSON.parse(text) as { type?: string };
    const names = Object.keys(this.document.channels[channel]?.messages ?? {});
    const name = names.find((one) => this.document.components.schemas[one]?.properties?.type?.const === value.type);
    if (name === undefined) return [`${channel} has no message of the type ${value.type}`];
    let validate = this.#validators.get(name);
    if (!validate) {
      validate = this.#ajv.compile({ $ref: `${ID}#/components/schemas/${name}` });
      this.#validators.set(name, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}: ${text}`,
    );
  }
}
