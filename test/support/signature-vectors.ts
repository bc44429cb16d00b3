import { readFileSync } from 'node:fs';

/** A signed delivery that other implementations must reproduce; the first secret is the current one. */
export interface SignatureVector {
  readonly name: string;
  readonly secrets: readonly [string, ...string[]];
  readonly id: string;
  readonly timestampSeconds: number;
  readonly body: string;
  readonly headers: { readonly 'X-Webhook-Signature': string; readonly 'webhook-signature': string };
}

const { vectors } = JSON.parse(readFileSync(new URL('../vectors/signatures.json', import.meta.url), 'utf8')) as {
  vectors: SignatureVector[];
};

export { vectors as signatureVectors };
