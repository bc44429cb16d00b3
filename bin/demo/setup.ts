import { createHash, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FEED_PATHS } from '../../sim/feeds/hub.ts';
import { makePrivateKey, PRESET_KEY_ID } from '../../sim/kalshi/handshake.ts';
import { openAuthority } from '../../sim/receiver-tls.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { freePort, isPortFree } from '../../src/embedded/free-port.ts';
import { loadOrCreateSecret, readPrivateFile, writePrivateFile } from '../../src/embedded/private-file.ts';
import type { Companion } from '../../src/embedded/runner.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Environment } from '../terminal.ts';
import { archiveFolder } from './folder.ts';

/** The prefix of the paths of the demo's own subscriptions, which identifies them. */
export const HOOK_PREFIX = '/oddswire-demo/';

/** Fast polls of the simulator only. Each can be overridden. */
const DEFAULTS: Environment = {
  POLL_MARKETS_MS: '5000',
  POLL_PRICES_MS: '1000',
  POLL_TRADES_MS: '1000',
  POLL_BOOKS_MS: '2000',
  POLL_WALLETS_MS: '2000',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  // The archive shows the days before the first start within a minute or two.
  ARCHIVE_AFTER_HOURS: '1',
  MAINTAIN_STORAGE_MS: '60000',
};

/** Some markets traded on the days before, so that the archive has days that are over. */
const SIM_DAYS = ['--deep-markets', '4', '--deep-days', '2', '--deep-prints', '600'];

export interface DemoSetup {
  readonly environment: Environment;
  readonly companions: readonly Companion[];
  readonly apiKey: string;
  readonly opsPassword: string;
  /** The address of the demo's subscription, and its signing secret. */
  readonly hookUrl: string;
  readonly hookSecret: string;
  /** An address of the demo's receiver for webhooks of the user. */
  readonly receiverUrl: string;
  /** Remembers the alerts of the demo. */
  readonly alertsFile: string;
}

/** Everything the demo needs beside the service, created on first use and kept in `demoDir`. */
export async function setUpDemo(demoDir: string, given: Environment, log: Logger): Promise<DemoSetup> {
  const apiKey = given['BOOTSTRAP_API_KEY'] || (await kept('api-key', () => `ow_demo_${token(24)}`));
  const opsPassword = given['OPS_PASSWORD'] || (await kept('ops-password', () => token(12)));
  const hookSecret = await kept('webhook-secret', () => `whsec_${randomBytes(32).toString('base64')}`);
  const caDir = join(demoDir, 'receiver');
  const receiverPort = await loadOrChoosePort(join(demoDir, 'receiver-port'), log);
  const simPort = await freePort();
  const kalshiKeyFile = join(demoDir, 'kalshi-private-key.pem');
  await kept('kalshi-private-key.pem', makePrivateKey);
  const simUrl = `http://127.0.0.1:${simPort}`;

  function kept(name: string, make: () => string): Promise<string> {
    return loadOrCreateSecret(join(demoDir, name), make, log);
  }

  return {
    environment: {
      ...DEFAULTS,
      ARCHIVE_DIR: archiveFolder(demoDir),
      ...withoutEmpty(given),
      POLYMARKET_GAMMA_URL: `${simUrl}/gamma`,
      POLYMARKET_CLOB_URL: `${simUrl}/clob`,
      POLYMARKET_DATA_URL: `${simUrl}/data`,
      KALSHI_API_URL: `${simUrl}/kalshi/trade-api/v2`,
      MANIFOLD_API_URL: `${simUrl}/manifold/v0`,
      LIMITLESS_API_URL: `${simUrl}/limitless`,
      ...feedUrls(`ws://127.0.0.1:${simPort}`),
      KALSHI_API_KEY_ID: PRESET_KEY_ID,
      KALSHI_PRIVATE_KEY_FILE: kalshiKeyFile,
      BOOTSTRAP_API_KEY: apiKey,
      OPS_PASSWORD: opsPassword,
      WEBHOOK_CA_FILE: await trustedAuthorities(demoDir, caDir, given['WEBHOOK_CA_FILE']),
    },
    companions: [
      {
        name: 'sim',
        command: [
          'node',
          'dist/sim/main.js',
          '--port',
          String(simPort),
          '--kalshi-key-file',
          kalshiKeyFile,
          ...SIM_DAYS,
        ],
      },
      {
        name: 'receiver',
        isOfOthers: true,
        command: [
          'node',
          'dist/sim/receiver-main.js',
          '--port',
          String(receiverPort),
          '--ca-dir',
          caDir,
          '--secret-file',
          join(demoDir, 'webhook-secret'),
          '--signed-path',
          HOOK_PREFIX,
          '--json',
        ],
      },
    ],
    apiKey,
    opsPassword,
    // A subscription with another secret has another path, so it is not reused.
    hookUrl: `https://127.0.0.1:${receiverPort}${HOOK_PREFIX}${fingerprint(hookSecret)}`,
    hookSecret,
    receiverUrl: `https://127.0.0.1:${receiverPort}/me`,
    alertsFile: join(demoDir, 'alerts.json'),
  };
}

/** The simulator's feeds. */
function feedUrls(address: string): Environment {
  return {
    POLYMARKET_FEED_URL: `${address}${FEED_PATHS.clob}`,
    KALSHI_FEED_URL: `${address}${FEED_PATHS.kalshi}`,
    MANIFOLD_FEED_URL: `${address}${FEED_PATHS.manifold}`,
    LIMITLESS_FEED_URL: `${address}${FEED_PATHS.limitless}`,
  };
}

/** The receiver's authority, together with the user's: WEBHOOK_CA_FILE is one file. */
async function trustedAuthorities(demoDir: string, caDir: string, userFile: string | undefined): Promise<string> {
  const { caPem } = await openAuthority(caDir);
  if (!userFile) return join(caDir, 'ca.pem');
  const combined = join(demoDir, 'trusted-authorities.pem');
  const userPem = await readFile(userFile, 'utf8').catch((cause: unknown) => {
    throw new OddswireError('invalid_config', `WEBHOOK_CA_FILE: cannot read ${userFile}`, { cause });
  });
  await writeFile(combined, `${userPem.trimEnd()}\n${caPem}`);
  return combined;
}

/** Deliveries that wait for a retry contain the receiver's port, so a later start reuses the port unless it is taken. */
async function loadOrChoosePort(path: string, log: Logger): Promise<number> {
  const known = Number((await readPrivateFile(path, log)) ?? 0);
  if (Number.isInteger(known) && known > 0 && (await isPortFree(known, '127.0.0.1'))) return known;
  const port = await freePort();
  await writePrivateFile(path, `${port}\n`);
  return port;
}

/** An empty variable counts as unset. */
function withoutEmpty(given: Environment): Environment {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
}

function fingerprint(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 8);
}

function token(bytes: number): string {
  return randomBytes(bytes).toString('base64url');
}
