type Allowed = Readonly<Record<string, readonly [count: number, reason: string]>>;

export function findFloats(sources: ReadonlyMap<string, string>, allowed?: Allowed, allowedSql?: Allowed): string[];
