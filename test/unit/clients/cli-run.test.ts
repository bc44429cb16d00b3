import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../../clients/cli/src/commands.ts';
import { EXIT } from '../../../clients/cli/src/exit-codes.ts';
import { VERSION } from '../../../clients/cli/src/version.ts';
import { oddswireCli } from '../../support/cli-io.ts';
import { pageText, ROOT } from '../../support/markdown.ts';

const NAMES = Object.keys(COMMANDS);
const KEY = { ODDSWIRE_KEY: 'ow_live_x' };

describe('oddswire-cli', () => {
  it('lists every command with --help, and without arguments as an error', async () => {
    const [help, nothing] = [await oddswireCli(['--help']), await oddswireCli([])];
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const name of NAMES) expect(help.stdout).toMatch(new RegExp(`^  ${name} +\\w`, 'm'));
    expect(nothing).toEqual({ code: 2, stdout: '', stderr: help.stdout });
  });

  it.each(NAMES)('%s --help prints the usage and needs no variables', async (name) => {
    const help = await oddswireCli([name, '--help']);
    expect(help).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(`usage: oddswire-cli ${name}`) });
    expect(await oddswireCli(['help', name])).toEqual(help);
  });

  it('prints the warnings of the service to standard error', async () => {
    const warnings = [{ path: 'statuz', message: 'is ignored\x1b[2J; did you mean status?' }];
    const meta = { request_id: 'req_1', timestamp: 1, next_cursor: null, warnings };
    const server = createServer((_request, response) => {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ success: true, data: [], meta }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const env = { ...KEY, ODDSWIRE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
    const { code, stderr } = await oddswireCli(['markets'], { env });
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('warning: statuz is ignored\ufffd[2J; did you mean status?\n'),
    ]);
    await new Promise((resolve) => server.close(resolve));
  });

  it('suggests a command for a misspelt one', async () => {
    expect(await oddswireCli(['prcies'])).toMatchObject({
      code: 2,
      stderr:
        'oddswire-cli: unknown command "prcies"; did you mean "prices"?\n`oddswire-cli --help` lists the commands.\n',
    });
    expect((await oddswireCli(['toString'])).stderr).toMatch(/^oddswire-cli: unknown command "toString"\n/);
  });

  it('reports every wrong argument', async () => {
    const { code, stderr } = await oddswireCli([
      'candles',
      'm',
      'n',
      '--interval',
      '2h',
      '--what',
      '--json=1',
      '--start',
    ]);
    expect(code).toBe(2);
    for (const problem of [
      'unknown argument n',
      '--interval must be one of 1m, 5m, 15m, 1h, 4h, 1d',
      'unknown option --what',
      '--json takes no value',
      '--start needs a value',
    ]) {
      expect(stderr).toContain(`oddswire-cli candles: ${problem}\n`);
    }
    expect(stderr).toContain('usage: oddswire-cli candles MARKET');
  });

  it.each([
    [['book'], 'an argument is missing'],
    [['book', 'm', '--depth', '0'], '--depth must be a whole number from 1 to 200'],
    [['trades', 'm', '--json', '--csv'], 'choose --json or --csv'],
    [['trades', 'm', '--start', 'yesterday'], '--start must be an age such as 24h'],
    [['alerts', 'make'], '"make" must be one of list, create, get, delete'],
    [['alerts', 'create', 'o', 'over', 'x'], 'the condition must be one of above, below, crosses_above'],
    [['alerts', 'create', 'o', 'above'], 'the price must be a decimal number'],
    [['alerts', 'create', 'o', 'volume', 'much', '--windows', '3'], 'the threshold must be a decimal number'],
    [['alerts', 'create', 'o', 'status', '0.5'], 'status has no threshold'],
    [['alerts', 'create', 'o', 'change', '0.5', '--window', 'long'], '--window must be a span such as 90s'],
    [['alerts', 'create', 'o', 'spread', '0.5', '--direction', 'left'], '--direction must be one of at_most'],
    [['alerts', 'get'], 'alerts get takes one id'],
    [
      ['webhooks', 'create', 'https://example.com', '--events', 'trades'],
      '--events must be a comma list of price_alert',
    ],
    [['deliveries', 'recover', 'wh_1'], 'deliveries recover needs --since'],
    [['deliveries', 'retry', 'wh_1'], 'deliveries retry takes'],
    [['listen', '--forward', 'localhost:3000'], '--forward must be an http or https address'],
    [['listen', '--secret', 'short'], '--secret must have 16 to 256 characters'],
    [['market', '..'], "market_id must be an id, not '..'"],
  ])('ends with 2 for %j', async (argv, problem) => {
    const result = await oddswireCli(argv, { env: { ...KEY, ODDSWIRE_URL: 'http://127.0.0.1:9' } });
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining(problem) });
  });

  it('names the missing variables and ends with 78', async () => {
    const said = async (argv: string[], env: Record<string, string>) => {
      const { code, stderr } = await oddswireCli(argv, { env });
      expect(code).toBe(78);
      return stderr;
    };
    const url = { ODDSWIRE_URL: 'http://127.0.0.1:9' };
    const name = 'oddswire-cli markets: ';
    expect(await said(['markets'], {})).toBe(
      `${name}set ODDSWIRE_URL to the address of the API; set ODDSWIRE_KEY to an API key\n`,
    );
    expect(await said(['markets'], KEY)).toBe(`${name}set ODDSWIRE_URL to the address of the API\n`);
    expect(await said(['markets'], url)).toBe(`${name}set ODDSWIRE_KEY to an API key\n`);
    expect(await said(['markets'], { ...url, ODDSWIRE_KEY: '' })).toBe(
      `${name}ODDSWIRE_KEY is empty; set it to an API key\n`,
    );
    expect(await said(['markets', '--url', ''], KEY)).toBe(`${name}--url is empty; set it to the address of the API\n`);
    expect((await oddswireCli(['markets', '--url', 'ftp://x'], { env: KEY })).code).toBe(78);
  });

  it.each(['markets', 'listen', 'mcp'])(
    '%s names an invalid address or key, does nothing, and ends with 78',
    async (name) => {
      for (const env of [
        { ...KEY, ODDSWIRE_URL: 'localhost:8080' },
        { ODDSWIRE_KEY: 'ow live', ODDSWIRE_URL: 'http://127.0.0.1:9' },
      ]) {
        const { code, stdout, stderr } = await oddswireCli([name], { env });
        expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
        expect(stderr).toMatch(new RegExp(`^oddswire-cli ${name}: ODDSWIRE_URL and ODDSWIRE_KEY: .+\\n$`));
      }
    },
  );

  it('has the version of its package', async () => {
    const { version, name } = JSON.parse(readFileSync(`${ROOT}/clients/cli/package.json`, 'utf8'));
    expect({ version, name }).toEqual({ version: VERSION, name: '@oddswire/cli' });
    expect((await oddswireCli(['--version'])).stdout).toBe(`${VERSION}\n`);
  });
});

it('the README has every exit code of the program', () => {
  const section = pageText('clients/cli/README.md').split('## Exit codes')[1]?.split('\n## ')[0] ?? '';
  const documented = [...section.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(documented).toEqual(Object.values(EXIT).sort((a, b) => a - b));
});

describe('an answer with an error', () => {
  let close: (() => void) | undefined;
  afterEach(() => close?.());

  /** A server that answers every request alike. */
  async function answering(status: number, body: object, headers: Record<string, string> = {}): Promise<string> {
    const server = createServer((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_7', ...headers });
      response.end(JSON.stringify(body));
    });
    close = () => server.close();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it.each([
    [400, 'invalid_request', 1],
    [401, 'unauthorized', 3],
    [403, 'insufficient_scope', 3],
    [404, 'market_not_found', 4],
    [429, 'rate_limited', 6],
    [500, 'internal_error', 5],
  ])(
    'with status %i and code %s ends the command with %i, and prints code and request id',
    async (status, code, exit) => {
      const error = { code, message: 'because', details: [{ path: 'limit', message: 'is too large' }] };
      const headers: Record<string, string> = status === 429 ? { 'retry-after': '120' } : {};
      const url = await answering(status, { success: false, error }, headers);
      const later = status === 429 ? '  try again in 120 s\n' : '';
      expect(await oddswireCli(['markets'], { env: { ...KEY, ODDSWIRE_URL: url } })).toEqual({
        code: exit,
        stdout: '',
        stderr: `oddswire-cli markets: ${code}: because\n  limit: is too large\n${later}  request req_7\n`,
      });
    },
  );

  it('with control characters prints none of them', async () => {
    const url = await answering(404, { success: false, error: { code: 'market_not_found', message: 'no \x1b[2J' } });
    const { stderr } = await oddswireCli(['markets'], { env: { ...KEY, ODDSWIRE_URL: url } });
    expect(stderr).toBe('oddswire-cli markets: market_not_found: no \ufffd[2J\n  request req_7\n');
  });

  it('ends with 5 and the reason when the API cannot be reached', async () => {
    const url = await answering(200, {});
    close?.();
    const { code, stderr } = await oddswireCli(['markets'], { env: { ...KEY, ODDSWIRE_URL: url } });
    expect(code).toBe(5);
    expect(stderr).toMatch(/^oddswire-cli markets: connection_failed: no answer \(.*ECONNREFUSED.*\)\n$/);
  });
});

describe('the output', () => {
  const alert = {
    id: 'alert_1',
    tokenMint: 'a "quoted", token',
    condition: 'above',
    price: 0.62,
    status: 'active',
    createdAt: '2026-01-02T03:04:05.678Z',
    tracked: true,
    currency: 'USD',
  };

  async function listed(
    argv: readonly string[],
    options: Parameters<typeof oddswireCli>[1] = {},
    shown: object = alert,
  ) {
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ success: true, data: [shown], meta: { next_cursor: null } }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      return await oddswireCli(['alerts', ...argv], { ...options, env: { ...KEY, ODDSWIRE_URL: url, ...options.env } });
    } finally {
      server.close();
    }
  }

  it('is a table without colours when it is no terminal', async () => {
    const { stdout } = await listed([]);
    const [head = '', row = ''] = stdout.split('\n');
    expect(head).toMatch(/^ID +STATUS +CONDITION +PRICE +CURRENCY +TRACKED +CREATED +TRIGGERED +TOKEN$/);
    expect(row).toMatch(/^alert_1 +active +above +0\.62 +USD +yes +2026-01-02 03:04:05 +a "quoted", token$/);
  });

  it('has colours on a terminal, but not with NO_COLOR', async () => {
    expect((await listed([], { isTerminal: true })).stdout).toContain('\x1b[2mID');
    expect((await listed([], { isTerminal: true, env: { NO_COLOR: '1' } })).stdout).not.toContain('\x1b');
    expect((await listed([], { isTerminal: true, env: { TERM: 'dumb' } })).stdout).not.toContain('\x1b');
  });

  it('quotes cells of CSV', async () => {
    expect((await listed(['--csv'])).stdout).toBe(
      'id,status,condition,price,currency,tracked,created,triggered,token\r\n' +
        'alert_1,active,above,0.62,USD,true,2026-01-02T03:04:05.678Z,,"a ""quoted"", token"\r\n',
    );
  });

  it.each([
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
    ["+cmd|' /C calc'!A0", `"'+cmd|' /C calc'!A0"`],
    ['-2+3+cmd', `"'-2+3+cmd"`],
    ['@SUM(1+1)', `"'@SUM(1+1)"`],
    ['\t=1+1', `"'\t=1+1"`],
    ['\r=1+1', `"'\r=1+1"`],
    ['\uff1d1+1', `"'\uff1d1+1"`],
    // With a semicolon as separator the second part would be a cell.
    ['a;=1+1', '"a;=1+1"'],
    // Numbers stay numbers, also with a sign.
    ['-0.25', '-0.25'],
    ['-1e-7', '-1e-7'],
    ['-1e-7+cmd', `"'-1e-7+cmd"`],
    ['0.25', '0.25'],
    ['a=1', 'a=1'],
  ])('keeps the cell %j of CSV from being a formula', async (tokenMint, cell) => {
    const { stdout } = await listed(['--csv'], {}, { ...alert, tokenMint });
    expect(stdout.endsWith(`,${cell}\r\n`)).toBe(true);
  });

  it('has the exact text in the CSV of a file, and no control character in that of a terminal', async () => {
    const hostile = { ...alert, tokenMint: 'a\x1b[2J' };
    expect((await listed(['--csv'], {}, hostile)).stdout).toContain(',a\x1b[2J\r\n');
    expect((await listed(['--csv'], { isTerminal: true }, hostile)).stdout).toContain(',a\ufffd[2J\r\n');
  });

  it('is the data and meta of the API with --json', async () => {
    expect(JSON.parse((await listed(['--json'])).stdout)).toEqual({ data: [alert], meta: { next_cursor: null } });
  });
});
