import { constants, createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const PATH = '/trade-api/ws/v2';
const SALT_BYTES = 32;
/** A signature older than this is refused. */
const MAX_SKEW_MS = 5_000;

/** The id of a key that the simulator gets at its start. */
export const PRESET_KEY_ID = 'sim-preset-key';

/** A throwaway private key, PEM. It protects nothing, and a key of 2,048 bits can take a second. */
export function makePrivateKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 1_024 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
}

export interface KalshiKey {
  readonly id: string;
  /** PEM. */
  readonly privateKey: string;
}

interface Known {
  readonly publicKey: KeyObject;
  isExpired: boolean;
}

/** One for all keys of a process, because its generation takes tenths of a second. */
let throwaway: string | undefined;

/** The API keys of the simulated venue, and its check of signed handshakes. */
export class KalshiKeys {
  private readonly keys = new Map<string, Known>();

  create(): KalshiKey {
    throwaway ??= makePrivateKey();
    const privateKey = throwaway;
    const id = `sim-key-${this.keys.size + 1}`;
    this.accept(id, privateKey);
    return { id, privateKey };
  }

  /** Accepts the handshakes of this private key, PEM. */
  accept(id: string, privateKey: string): void {
    this.keys.set(id, { publicKey: createPublicKey(privateKey), isExpired: false });
  }

  expire(id: string): void {
    const key = this.keys.get(id);
    if (key !== undefined) key.isExpired = true;
  }

  /** The reason of a refusal; undefined for a valid signature. */
  refusalOf(headers: IncomingHttpHeaders, nowMs: number): string | undefined {
    const key = this.keys.get(textOf(headers['kalshi-access-key']));
    const stamp = textOf(headers['kalshi-access-timestamp']);
    const signature = textOf(headers['kalshi-access-signature']);
    if (stamp === '' || signature === '') return 'MISSING_PARAMETERS';
    if (key === undefined) return 'NOT_FOUND';
    if (key.isExpired) return 'API_KEY_EXPIRED';
    if (!(Math.abs(nowMs - Number(stamp)) <= MAX_SKEW_MS)) return 'header_timestamp_expired';
    const isValid = verify(
      'sha256',
      Buffer.from(`${stamp}GET${PATH}`),
      { key: key.publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: SALT_BYTES },
      Buffer.from(signature, 'base64'),
    );
    return isValid ? undefined : 'INCORRECT_API_KEY_SIGNATURE';
  }
}

function textOf(header: string | string[] | undefined): string {
  return typeof header === 'string' ? header : '';
}
