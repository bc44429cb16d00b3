/** The session of a request, without the key. */
export interface ConsoleSessionState {
  caller: {
    accountId: bigint;
    keyId: string;
    scopes: readonly string[];
    /** The account's own limit; null: the limit of the configuration. */
    coldReadsPerMinute: number | null;
  };
  accountName: string;
  keyName: string;
  /** The account's own limit of requests per minute; null: the default. */
  ratePerMinute: number | null;
  tokenHash: Buffer;
  /** The token of every form of the session. */
  csrf: string;
  flash: string | null;
}
