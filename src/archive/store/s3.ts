import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import type { Config } from '../../config/config.ts';
import { OddswireError } from '../../domain/values/errors.ts';

/** Tries of an operation, with a pause between them that grows. */
const TRIES = 3;
const PAUSE_MS = 200;
/** A connection without a byte for so long is given up. */
const SILENCE_MS = 15_000;
/** A body that arrives slower than this is given up. */
const MIN_BYTES_PER_MS = 20;
const EMPTY_SHA256 = createHash('sha256').digest('hex');
/** The text of an answer is a list of at most a thousand keys, or an error. */
const MAX_TEXT = 4_000_000;

/** The content of an object; `sha256` is hexadecimal. */
export interface Content {
  readonly bytes: number;
  readonly sha256: string;
}

interface StoreOptions {
  readonly bucket: string;
  /** Empty, or ending with a slash. */
  readonly prefix: string;
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly silenceMs?: number;
}

interface Sent {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Content & { open(): Readable };
  /** The size of the answer, when the caller knows it. */
  readonly expectedBytes?: number;
}

/** The store of a configuration; undefined without `ARCHIVE_URL`. */
export function storeOf({ archive }: Pick<Config, 'archive'>): ObjectStore | undefined {
  const { url, region, endpoint, accessKeyId, secretAccessKey } = archive.store;
  // A configuration with an address and without credentials is of a process that does not use the archive.
  if (url === undefined || accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return new ObjectStore({
    ...url,
    region,
    endpoint: endpoint ?? `https://s3.${region}.amazonaws.com`,
    accessKeyId,
    secretAccessKey,
  });
}

/**
 * The objects below a prefix of a bucket of S3. Operations are repeated after a lost answer or an error of the server, which is safe: an
 * object gets the same content each time.
 */
export class ObjectStore {
  /** The address of the prefix, without credentials. */
  readonly url: string;
  readonly #options: StoreOptions;
  /** Derived keys of signatures. */
  readonly #signing = new Map<string, ArrayBuffer>();

  constructor(options: StoreOptions) {
    this.#options = options;
    this.url = `s3://${options.bucket}/${options.prefix}`;
  }

  /**
   * Stores a file, and compares the object with it. An object that has the content already is not sent again.
   * @throws OddswireError `store_unavailable`
   */
  putFile(key: string, path: string, content: Content, signal: AbortSignal): Promise<void> {
    return this.#put(key, { ...content, open: () => Readable.from(wholeFile(key, path, content.bytes)) }, signal);
  }

  /** @throws OddswireError `store_unavailable` */
  putText(key: string, text: string, signal: AbortSignal): Promise<void> {
    const bytes = Buffer.from(text);
    return this.#put(key, { ...contentOf(bytes), open: () => Readable.from([bytes]) }, signal);
  }

  #put(key: string, body: Content & { open(): Readable }, signal: AbortSignal): Promise<void> {
    return this.#retrying(signal, async () => {
      // The answer of a former try may be lost.
      if (await this.#holds(key, body, signal)) return;
      const checksum = Buffer.from(body.sha256, 'hex').toString('base64');
      await this.#finish({ method: 'PUT', key, body, headers: { 'x-amz-checksum-sha256': checksum } }, signal);
      if (await this.#holds(key, body, signal)) return;
      throw failure(`has another content of ${key} than the one that was sent`, { retryable: true });
    });
  }

  /**
   * Whether the store has an object of this content.
   * @throws OddswireError `store_unavailable`
   */
  holds(key: string, content: Content, signal: AbortSignal): Promise<boolean> {
    return this.#retrying(signal, () => this.#holds(key, content, signal));
  }

  async #holds(key: string, { bytes, sha256 }: Content, signal: AbortSignal): Promise<boolean> {
    const headers = { 'x-amz-checksum-mode': 'ENABLED' };
    const answer = await this.#send({ method: 'HEAD', key, headers }, signal);
    answer.resume();
    if (answer.statusCode === 404) {
      // The answer of HEAD has no reason: only that of GET tells a missing object from a missing bucket or an unknown key.
      const object = await this.#send({ method: 'GET', key, headers: { range: 'bytes=0-0' } }, signal);
      if (await this.#isMissing(object, key)) return false;
      object.resume();
      throw failure(`has ${key} for GET, and not for HEAD`, { retryable: true });
    }
    if (Number(answer.headers['content-length']) !== bytes) return false;
    const stated = answer.headers['x-amz-checksum-sha256'];
    if (typeof stated === 'string') return Buffer.from(stated, 'base64').toString('hex') === sha256;
    // A server may keep no checksum.
    const hash = createHash('sha256');
    const object = await this.#send({ method: 'GET', key, expectedBytes: bytes }, signal);
    if (await this.#isMissing(object, key)) return false;
    for await (const chunk of object) hash.update(chunk as Buffer);
    return hash.digest('hex') === sha256;
  }

  /**
   * Writes an object to a new file. False when the store does not have it.
   * @throws OddswireError `store_unavailable`, also when the object has another content
   */
  fetchFile(key: string, path: string, content: Content, signal: AbortSignal): Promise<boolean> {
    return this.#retrying(signal, async () => {
      const answer = await this.#send({ method: 'GET', key, expectedBytes: content.bytes }, signal);
      if (await this.#isMissing(answer, key)) return false;
      const hash = createHash('sha256');
      const hashed = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          hash.update(chunk);
          done(null, chunk);
        },
      });
      await pipeline(answer, hashed, createWriteStream(path), { signal });
      if (hash.digest('hex') === content.sha256) return true;
      throw failure(`sent another content of ${key} than the catalog states`, { retryable: true });
    });
  }

  /**
   * The text of a small object; null when the store does not have it.
   * @throws OddswireError `store_unavailable`
   */
  readText(key: string, signal: AbortSignal): Promise<string | null> {
    return this.#retrying(signal, async () => {
      const answer = await this.#send({ method: 'GET', key }, signal);
      return (await this.#isMissing(answer, key)) ? null : textOf(answer);
    });
  }

  /** @throws OddswireError `store_unavailable` */
  copy(from: string, to: string, signal: AbortSignal): Promise<void> {
    const { bucket, prefix } = this.#options;
    const headers = { 'x-amz-copy-source': encodeURI(`/${bucket}/${prefix}${from}`) };
    return this.#retrying(signal, () => this.#finish({ method: 'PUT', key: to, headers }, signal));
  }

  /** An object that is gone is no error. @throws OddswireError `store_unavailable` */
  remove(key: string, signal: AbortSignal): Promise<void> {
    return this.#retrying(signal, () => this.#finish({ method: 'DELETE', key }, signal));
  }

  /**
   * The objects whose key begins with a text, in the order of their keys.
   * @throws OddswireError `store_unavailable`
   */
  async list(begin: string, signal: AbortSignal): Promise<{ key: string; bytes: number }[]> {
    const { prefix } = this.#options;
    const found: { key: string; bytes: number }[] = [];
    for (let token: string | undefined, isLast = false; !isLast; ) {
      const query = {
        'list-type': '2',
        prefix: `${prefix}${begin}`,
        ...(token !== undefined && { 'continuation-token': token }),
      };
      const text = await this.#retrying(signal, async () => {
        const answer = await this.#send({ method: 'GET', key: '', query }, signal);
        await this.#isMissing(answer, '');
        return textOf(answer);
      });
      for (const [, entry = ''] of text.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
        found.push({ key: elementOf(entry, 'Key').slice(prefix.length), bytes: Number(elementOf(entry, 'Size')) });
      }
      token = elementOf(text, 'NextContinuationToken');
      isLast = token === '';
    }
    return found;
  }

  async #finish(sent: Sent, signal: AbortSignal): Promise<void> {
    const answer = await this.#send(sent, signal);
    const isMissing = await this.#isMissing(answer, sent.key);
    if (isMissing && sent.method !== 'DELETE') throw failure(`answered 404 to ${sent.method} ${sent.key}`);
    const text = isMissing ? '' : await textOf(answer);
    // A copy that fails late has the status 200.
    if (text.includes('<Error>')) throw failure(`answered ${elementOf(text, 'Code')} to ${sent.method} ${sent.key}`);
  }

  /** Whether the store says that it does not have the object. @throws OddswireError for another reason of a 404 */
  async #isMissing(answer: IncomingMessage, key: string): Promise<boolean> {
    if (answer.statusCode !== 404) return false;
    const code = elementOf(await textOf(answer), 'Code').replaceAll(/\W/g, '');
    const what = key === '' ? 'a list' : key;
    if (code === 'NoSuchBucket') throw failure(`has no bucket ${this.#options.bucket}, which ${what} needs`);
    if (code !== 'NoSuchKey' || key === '') throw failure(`answered ${`404 ${code}`.trim()} to a request of ${what}`);
    return true;
  }

  async #retrying<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    for (let tried = 1; ; tried += 1) {
      try {
        return await work();
      } catch (thrown) {
        if (signal.aborted) throw abortOf(signal);
        const error = thrown instanceof OddswireError ? thrown : failure(reasonOf(thrown), { cause: thrown });
        const isFinal = thrown instanceof OddswireError && !thrown.retryable;
        if (isFinal || tried === TRIES) throw error;
        await pause(PAUSE_MS * 3 ** (tried - 1) * (0.5 + Math.random()), undefined, { signal });
      }
    }
  }

  /** The answer, with the status 404 too. @throws OddswireError for other errors */
  async #send(sent: Sent, signal: AbortSignal): Promise<IncomingMessage> {
    const { method, key, body } = sent;
    const answer = await this.#request(await this.#signed(sent), sent, signal);
    const status = answer.statusCode ?? 0;
    if (status < 300 || status === 404) return answer;
    // The text of an error can have the key id and the signature.
    const code = elementOf(await textOf(answer), 'Code').replaceAll(/\W/g, '');
    const message = `answered ${[status, code].join(' ').trim()} to ${method} ${key === '' ? 'of a list' : key}`;
    throw failure(message, {
      retryable: status >= 500 || status === 429 || (body !== undefined && code === 'RequestTimeout'),
    });
  }

  async #signed({ method, key, query = {}, headers = {}, body }: Sent): Promise<{ url: URL; headers: Headers }> {
    const { endpoint, bucket, prefix, region, accessKeyId, secretAccessKey } = this.#options;
    const url = new URL(`${endpoint}/${bucket}${key === '' ? '' : `/${prefix}${key}`}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const { headers: signed } = await new AwsV4Signer({
      ...{ method, url: url.href, service: 's3', region, accessKeyId, secretAccessKey, cache: this.#signing },
      headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? EMPTY_SHA256 },
    }).sign();
    // The signature has spaces as %20.
    url.search = url.search.replaceAll('+', '%20');
    return { url, headers: signed };
  }

  #request(
    { url, headers }: { url: URL; headers: Headers },
    sent: Sent,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { method, body, expectedBytes = 0 } = sent;
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const length = body === undefined && method !== 'PUT' ? {} : { 'content-length': String(body?.bytes ?? 0) };
    const { silenceMs = SILENCE_MS } = this.#options;
    return new Promise((resolve, reject) => {
      const request = send(url, { method, headers: { ...Object.fromEntries(headers), ...length }, signal });
      const limitMs = silenceMs + Math.max(expectedBytes, body?.bytes ?? 0) / MIN_BYTES_PER_MS;
      const giveUp = () => request.destroy(failure(`sent no whole answer to ${method} in time`, { retryable: true }));
      const timer = setTimeout(giveUp, limitMs);
      request.setTimeout(silenceMs, giveUp);
      request.once('close', () => clearTimeout(timer));
      request.once('response', (answer) => {
        // An answer whose reader is not ready yet reports its end by itself.
        answer.on('error', () => undefined);
        resolve(answer);
      });
      request.on('error', reject);
      if (body === undefined) request.end();
      else pipeline(body.open(), request).catch(reject);
    });
  }
}

/** The chunks of a file. A server would wait for the rest of one that is too short. */
async function* wholeFile(key: string, path: string, bytes: number): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const chunk of createReadStream(path)) {
    read += (chunk as Buffer).length;
    if (read > bytes) break;
    yield chunk as Buffer;
  }
  if (read !== bytes) throw failure(`gets no ${key}, because its file has no ${bytes} bytes`);
}

function contentOf(bytes: Buffer): Content {
  return { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > MAX_TEXT) throw failure('sent an answer that is too long');
  }
  return text;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** The text of the first element of a name; empty without one. */
function elementOf(xml: string, name: string): string {
  const [, text = ''] = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml) ?? [];
  return text.replaceAll(/&(\w+);/g, (whole, entity: string) => ENTITIES[entity] ?? whole);
}

/** A stop of the process stays what it is; a deadline is a fault of the store. */
function abortOf({ reason }: AbortSignal): unknown {
  return (reason as { name?: unknown }).name === 'TimeoutError' ? failure('did not answer in time') : reason;
}

function reasonOf(thrown: unknown): string {
  const { code } = thrown as { code?: unknown };
  return code === 'ECONNREFUSED' ? 'refuses connections' : `ended a connection early (${String(code ?? 'no code')})`;
}

function failure(message: string, options: { retryable?: boolean; cause?: unknown } = {}): OddswireError {
  return new OddswireError('store_unavailable', `the object store ${message}`, options);
}
