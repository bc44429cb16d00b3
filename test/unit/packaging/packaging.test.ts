import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../../bin/commands.ts';
import { mayRead } from '../../../src/config/process-secrets.ts';
import { parseRedisUrl } from '../../../src/config/redis-address.ts';
import { VARIABLES } from '../../../src/config/variables.ts';
import { networkOf, parseCidrs } from '../../../src/domain/webhooks/address-policy.ts';
import { parseProcfile } from '../../../src/embedded/procfile.ts';
import { ROLES, STREAMER } from '../../../src/queues/jobs.ts';
import { rolesSql } from '../../../src/store/db/roles.ts';
import { parsePlainYaml, type Yaml } from '../../support/metrics/plain-yaml.ts';

const COMPOSE_FILES = ['docker-compose.yml', 'docker-compose.pgbouncer.yml', 'docker-compose.loopback.yml'];
/** Variables of compose itself or of a foreign image. */
const OTHERS_VARIABLES = [
  ...['POSTGRES_USER', 'POSTGRES_PASSWORD', 'POSTGRES_DB', 'POSTGRES_APP_PASSWORD', 'API_PORT'],
  ...['PGHOST', 'PGUSER', 'PGDATABASE', 'PGPASSWORD'],
  ...['ODDSWIRE_DOMAIN', 'REDIS_PASSWORD', 'REDISCLI_AUTH'],
];
const DOCKERFILE = readFileSync('Dockerfile', 'utf8');

type Mapping = { [key: string]: Yaml };

function mapping(value: Yaml | undefined): Mapping {
  if (typeof value !== 'object' || Array.isArray(value)) throw new Error(`not a mapping: ${JSON.stringify(value)}`);
  return value;
}

function list(value: Yaml | undefined): string[] {
  if (!Array.isArray(value)) throw new Error(`not a list: ${JSON.stringify(value)}`);
  return value.map(String);
}

function compose(file: string): { top: Mapping; services: ReadonlyMap<string, Mapping> } {
  const top = mapping(parsePlainYaml(readFileSync(file, 'utf8')));
  const services = Object.entries(mapping(top['services'])).map(([name, value]) => [name, mapping(value)] as const);
  return { top, services: new Map(services) };
}

const production = compose('docker-compose.yml');
const oddswire = mapping(production.top['x-oddswire']);
const ours = ['api', ...ROLES, STREAMER];

/** The instructions of a Dockerfile, continued lines joined. */
function instructions(text: string): { name: string; rest: string }[] {
  const lines = text.replace(/\\\n/g, ' ').split('\n');
  return lines.flatMap((line) => {
    const match = /^([A-Z]+) +(.*)$/.exec(line);
    return match ? [{ name: match[1] ?? '', rest: match[2] ?? '' }] : [];
  });
}

describe('the compose files', () => {
  it('have a service with the same command for every process of the Procfile', () => {
    const processes = parseProcfile(readFileSync('Procfile', 'utf8')).filter(({ name }) => name !== 'db');
    expect(processes.map(({ name }) => name).sort()).toEqual([...ours].sort());
    for (const { name, command } of processes) {
      expect(production.services.get(name)?.['command'], name).toEqual([...command]);
    }
  });

  it.each(COMPOSE_FILES)('%s sets only variables that a process reads', (file) => {
    for (const [name, service] of compose(file).services) {
      for (const variable of Object.keys(mapping(service['environment'] ?? {}))) {
        expect([...Object.keys(VARIABLES), ...OTHERS_VARIABLES], `${name}: ${variable}`).toContain(variable);
      }
    }
    const asked = readFileSync(file, 'utf8').matchAll(/\$\{(\w+)/g);
    for (const [, variable] of asked) {
      expect([...Object.keys(VARIABLES), ...OTHERS_VARIABLES]).toContain(variable);
    }
  });

  it('give each of our containers few rights, a restart policy, and enough time to stop', () => {
    for (const name of ours) {
      const service = { ...oddswire, ...production.services.get(name) };
      expect(service, name).toMatchObject({
        image: 'oddswire',
        restart: 'unless-stopped',
        init: 'true',
        read_only: 'true',
        tmpfs: ['/tmp'],
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        depends_on: {
          postgres: { condition: 'service_healthy' },
          redis: { condition: 'service_healthy' },
          migrate: { condition: 'service_completed_successfully' },
        },
      });
      expect(Number.parseInt(String(service['stop_grace_period']), 10), name).toBeGreaterThan(20);
    }
  });

  it('give each process the secrets that it reads, and no other of .env', () => {
    const secrets = Object.keys(VARIABLES).filter((name) => !mayRead('nobody', name));
    for (const name of ours) {
      const { env_file: files, environment } = { ...oddswire, ...production.services.get(name) };
      // The file has every secret. A value of `environment` replaces that of the file.
      expect(JSON.stringify(files), name).toContain('.env');
      const given = mapping(environment);
      for (const secret of secrets) {
        const isRead = mayRead(name, secret);
        expect([name, secret, given[secret]]).toEqual([
          name,
          secret,
          isRead ? expect.stringMatching(new RegExp(`^\\$\\{${secret}:[-?]`)) : '',
        ]);
      }
      for (const secret of ['POSTGRES_PASSWORD', 'POSTGRES_APP_PASSWORD', 'REDIS_PASSWORD', 'DATABASE_MIGRATE_URL'])
        expect([name, secret, given[secret]]).toEqual([name, secret, '']);
    }
  });

  it('give the superuser of Postgres only to the services that create roles and migrate, and end', () => {
    const owners: string[] = [];
    for (const file of COMPOSE_FILES) {
      for (const [name, service] of compose(file).services) {
        const environment = mapping(service['environment'] ?? {});
        if (/\$\{POSTGRES_PASSWORD/.test(JSON.stringify(environment))) owners.push(`${file} ${name}`);
        for (const variable of ['DATABASE_URL', 'DATABASE_DIRECT_URL']) {
          const url = environment[variable];
          if (url !== undefined)
            expect(String(url), name).toMatch(/^postgres:\/\/oddswire_app:\$\{POSTGRES_APP_PASSWORD:\?/);
        }
      }
    }
    expect(owners).toEqual(['postgres', 'roles', 'migrate'].map((name) => `docker-compose.yml ${name}`));
    for (const name of ['roles', 'migrate']) expect(production.services.get(name)).toMatchObject({ restart: 'no' });
    const { depends_on: before } = production.services.get('migrate') ?? {};
    expect(before).toMatchObject({ roles: { condition: 'service_completed_successfully' } });
  });

  it('create the role of the processes with the statements of `oddswire roles`, as often as they run', () => {
    const sql = readFileSync('deploy/postgres/roles.sql', 'utf8');
    expect(sql).toBe(rolesSql({ migrator: 'oddswire', app: 'oddswire_app', database: 'oddswire' }));
    const command = list(production.services.get('roles')?.['command']);
    expect(command.filter((each) => each.startsWith('/roles/'))).toEqual(['/roles/roles.sql', '/roles/password.sql']);
    expect(command.join(' ')).toContain('ON_ERROR_STOP=1');
    expect(existsSync('deploy/postgres/password.sql')).toBe(true);
  });

  it('keep the queues when Redis restarts or is full, and have health checks', () => {
    const command = production.services.get('redis')?.['command'];
    expect(String(command)).toContain('--appendonly,yes,');
    expect(String(command)).toContain('--maxmemory-policy,noeviction');
    const volumes = Object.keys(mapping(production.top['volumes']));
    for (const name of ['postgres', 'redis', 'caddy']) {
      const service = production.services.get(name) ?? {};
      expect(service['healthcheck'], name).toBeDefined();
      const mounted = list(service['volumes']).map((volume) => volume.split(':')[0] ?? '');
      expect(
        mounted.some((source) => volumes.includes(source)),
        name,
      ).toBe(true);
      for (const source of mounted) expect(volumes.includes(source) || existsSync(source), source).toBe(true);
    }
  });

  it('limit the memory of every service', () => {
    for (const file of ['docker-compose.yml', 'docker-compose.pgbouncer.yml']) {
      for (const [name, service] of compose(file).services) {
        if (file === 'docker-compose.pgbouncer.yml' && name === 'api') continue;
        expect(String(service['mem_limit']), name).toMatch(/^\d+[mg]$/);
      }
    }
  });

  it('give Redis a password, which its command and its health check do not name', () => {
    const redis = production.services.get('redis') ?? {};
    expect(mapping(redis['environment'])['REDISCLI_AUTH']).toMatch(/^\$\{REDIS_PASSWORD:\?/);
    expect(`${redis['command']} ${mapping(redis['healthcheck'])['test']}`).not.toContain('PASSWORD');
    const url = String(mapping(oddswire['environment'])['REDIS_URL']).replace(/\$\{REDIS_PASSWORD:\?[^}]+\}/, 'a5e1');
    expect(parseRedisUrl(url)).toMatchObject({ password: 'a5e1' });
  });

  it('publish ports of the TLS proxy only, whose address alone the API trusts', () => {
    const published = [...production.services].filter(([, service]) => service['ports'] !== undefined);
    expect(published.map(([name, { ports }]) => [name, ports])).toEqual([
      ['caddy', ['80:80', '443:443', '443:443/udp']],
    ]);

    const caddy = production.services.get('caddy') ?? {};
    const address = String(mapping(mapping(caddy['networks'])['edge'])['ipv4_address']);
    const environment = mapping(production.services.get('api')?.['environment']);
    expect(production.services.get('api')?.['networks']).toEqual(['default', 'edge']);
    expect(environment['TRUSTED_PROXIES']).toBe(address);
    expect(environment['OPS_PUBLIC_URL']).toMatch(/^https:\/\/\$\{ODDSWIRE_DOMAIN:\?/);
    const { ipam } = mapping(mapping(production.top['networks'])['edge']);
    const [{ subnet, ip_range: others } = {}] = (mapping(ipam)['config'] as Mapping[]) ?? [];
    expect(networkOf(address, parseCidrs(String(subnet)))).toMatchObject({ isWithin: true });
    expect(networkOf(address, parseCidrs(String(others)))).toMatchObject({ isWithin: false });
  });

  it('send every request of the domain to the port of the API without a buffer', () => {
    const caddyfile = readFileSync('deploy/caddy/Caddyfile', 'utf8');
    const port = mapping(oddswire['environment'])['PORT'];
    expect(caddyfile).toMatch(/^\{\$ODDSWIRE_DOMAIN\} \{$/m);
    expect(caddyfile).toMatch(new RegExp(`^\\t\\tdynamic a api ${port} \\{$`, 'm'));
    expect(caddyfile).toMatch(/^\t\tflush_interval -1$/m);
    expect(caddyfile.split('{').length).toBe(caddyfile.split('}').length);
  });

  it('can publish the API on loopback instead', () => {
    const { services } = compose('docker-compose.loopback.yml');
    expect(services.get('api')?.['ports']).toEqual([expect.stringMatching(/^127\.0\.0\.1:\$\{API_PORT:-8080\}:8080$/)]);
    expect(mapping(services.get('api')?.['environment'])).toEqual({
      TRUSTED_PROXIES: expect.stringMatching(/^\$\{TRUSTED_PROXIES:-\}$/),
      OPS_PUBLIC_URL: expect.stringMatching(/^\$\{OPS_PUBLIC_URL:-\}$/),
    });
    expect(services.get('caddy')).toEqual({ profiles: ['with-tls'] });
  });

  it('route only the API through PgBouncer, and its session uses past it', () => {
    const { services } = compose('docker-compose.pgbouncer.yml');
    expect([...services.keys()]).toEqual(['pgbouncer', 'api']);
    const environment = mapping(services.get('api')?.['environment']);
    expect(environment['DATABASE_URL']).toContain('@pgbouncer:6432/');
    expect(environment['DATABASE_DIRECT_URL']).toBe(mapping(oddswire['environment'])['DATABASE_URL']);
    expect(existsSync(`${services.get('pgbouncer')?.['build']}/Dockerfile`)).toBe(true);
  });
});

describe('the scripts of the package', () => {
  it('run every command through the one executable', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
    const ofOddswire = Object.keys(scripts).filter((name) => scripts[name]?.includes('dist/bin/oddswire.js '));
    expect(ofOddswire.sort()).toEqual(['audit', 'config', 'demo', 'keys', 'operators', 'rejected', 'start']);
    for (const name of ofOddswire) {
      expect(scripts[name]).toBe(`node scripts/bundle.mjs && exec node dist/bin/oddswire.js ${name}`);
      expect(Object.keys(COMMANDS)).toContain(name);
    }
  });
});

describe('the image', () => {
  const stages = DOCKERFILE.split(/^(?=FROM )/m).slice(1);
  const last = stages.at(-1) ?? '';

  it('copies existing files only', () => {
    for (const { name, rest } of instructions(DOCKERFILE)) {
      if (name !== 'COPY') continue;
      const sources = rest.split(/ +/).slice(0, -1);
      if (sources[0]?.startsWith('--from=')) continue;
      for (const source of sources) expect(existsSync(source), source).toBe(true);
    }
  });

  it('excludes all other files of the folder from its context', () => {
    const allowed = readFileSync('.dockerignore', 'utf8')
      .split('\n')
      .flatMap((line) => /^!(.+)$/.exec(line)?.[1] ?? []);
    const copied = instructions(DOCKERFILE)
      .filter(({ name, rest }) => name === 'COPY' && !rest.startsWith('--from='))
      .flatMap(({ rest }) => rest.split(/ +/).slice(0, -1));
    expect([...new Set(copied)].sort()).toEqual([...allowed].sort());
    expect(readFileSync('.dockerignore', 'utf8')).toMatch(/^\*$/m);
  });

  it('contains the program, its packages and the files that it reads, without sources', () => {
    const copied = instructions(last).filter(({ name }) => name === 'COPY');
    expect(copied.map(({ rest }) => rest.split(' ').at(-1))).toEqual([
      './package.json',
      './node_modules',
      './api/pages/kit/assets',
      './api/pages/ops/assets',
      './api/pages/console/assets',
      './api/docs/assets',
      './dist',
      './docs',
      './Procfile',
    ]);
  });

  it('has the executable of the package on its PATH', () => {
    const { bin } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Record<string, string> };
    for (const [name, file] of Object.entries(bin)) {
      expect(last).toContain(`RUN ln -s /app/${file} /usr/local/bin/${name}\n`);
      expect(readFileSync(file.replace(/^dist\/(.*)\.js$/, '$1.ts'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    }
  });

  it('runs as an unprivileged user on Node 24, and has a health check of its process', () => {
    for (const stage of stages) expect(stage).toMatch(/^FROM node:24-slim/);
    expect(last).toMatch(/^USER node$/m);
    expect(last).toMatch(/^HEALTHCHECK /m);
    expect(last).toContain('process.env.METRICS_PORT}/health/live');
    const [, environment = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(last) ?? [];
    const names = [...environment.matchAll(/(\w+)=/g)].map(([, name]) => name);
    expect(names).toEqual(expect.arrayContaining(['HOST', 'PORT', 'METRICS_HOST', 'METRICS_PORT']));
    for (const name of names) expect([...Object.keys(VARIABLES), 'NODE_ENV']).toContain(name);
  });
});
