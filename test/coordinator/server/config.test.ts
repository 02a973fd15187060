// The configuration: defaults, accepted values and error messages.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import type { Setting } from '../../../coordinator/base/define-settings.ts'
import { loadConfig, SETTINGS } from '../../../coordinator/server/config.ts'
import { REGIONS } from '../../../shared/tiers.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { createTempDir } from '../../support/temp-dir.ts'

t.test('uses defaults for unset variables', async (t) => {
  t.same(loadConfig({}), {
    listen: { host: '127.0.0.1', port: 7070 },
    dataDir: resolve('.boxwood'),
    oidcIssuer: null,
    awsTemplateUrl: null,
    awsStsEndpoint: null,
    awsRegion: null,
    mcp: false,
    databaseUrl: null,
    masterKeysFile: null,
    publicUrl: null,
    replicaUrl: null,
    agentUrl: null,
    tlsListen: null,
    tlsCert: null,
    tlsKey: null,
    metricsListen: null,
    metricsToken: null,
    smtpUrl: null,
    mailFrom: null,
    signup: false,
    shares: true,
    shareLinks: true,
    dashboard: true,
    shareBase: null,
    trustedProxies: [],
    traces: false,
    logLevel: 'info',
    logFormat: 'auto',
    agentLogLevel: 'info',
    regions: new Map(REGIONS.map((region) => [region, { kind: 'local', target: null }])),
    dockerHost: null,
    podmanHost: null,
    dockerSubnets: ['10.213.0.0/16'],
    defaultImage: 'debian:12',
    imageLimit: 100,
    imageGib: 0,
    incus: null,
    incusCert: null,
    incusKey: null,
    incusServerCert: null,
    incusPool: null,
    isolation: 'auto',
    network: 'auto',
    protections: 'keep',
    warm: null,
    freezeMinutes: 60,
    deepSleepDays: 14,
    snapshotLimit: 100,
    billing: 'off',
    pricesFile: null,
    freeCreditMicros: 5_000_000,
    balanceWarnHours: 24,
    stripeKey: null,
    stripeWebhookSecret: null,
    autoTopUpMicros: 20_000_000,
    cardOverdraftMicros: 100_000_000,
    finalSnapshots: false,
    deletedBoxDays: 30,
    purgeDays: 30,
    commandDays: 30,
    auditSinkPrivate: false,
    secretsPrivate: [],
    limitsFile: null,
    limits: {
      maxConnections: 4096,
      addressConnections: 256,
      headersTimeoutSeconds: 20,
      idleTimeoutSeconds: 75,
      edgeRequestsPerSecond: 20,
      edgeConcurrency: 8,
      edgeStreams: 4,
      edgeAttachments: 64,
      edgeForwards: 256,
      terminals: 100,
      commandRecords: 10_000,
      commandOutputMiB: 256,
      idleCpuPercent: 5,
      logBytes: 64 * 1024 * 1024,
      exitedLogBytes: 1024 * 1024 * 1024,
      promptRuns: 4,
      promptConversations: 200,
      promptQueue: 100,
      promptMinutes: 360,
    },
  })
  t.same(loadConfig({ BOXWOOD_LISTEN: '' }), loadConfig({}), 'an empty variable counts as unset')
})

t.test('reads every variable', async (t) => {
  const config = loadConfig({
    BOXWOOD_LISTEN: '[::1]:0',
    BOXWOOD_DATA: '/srv/boxes',
    BOXWOOD_DATABASE_URL: 'postgresql:///boxwood?host=/run/postgresql',
    BOXWOOD_PUBLIC_URL: 'https://example.com/boxes/',
    BOXWOOD_AGENT_URL: 'http://10.0.0.1:7070',
    BOXWOOD_LOG: 'debug',
    BOXWOOD_LOG_FORMAT: 'json',
    BOXWOOD_REGIONS: 'eu-central-1=local, us-east-1=local',
    BOXWOOD_DOCKER_HOST: '/run/docker.sock',
    BOXWOOD_PODMAN_HOST: 'tcp://10.0.0.1:2376',
    BOXWOOD_DOCKER_SUBNETS: '10.1.0.0/16, 10.2.0.0/24',
    BOXWOOD_DEFAULT_IMAGE: 'registry.example.com:5000/base@sha256:00',
    BOXWOOD_IMAGE_LIMIT: '12',
    BOXWOOD_IMAGE_GIB: '50',
    BOXWOOD_INCUS: 'https://incus.example.com:8443/',
    BOXWOOD_INCUS_CERT: '/etc/boxwood/incus.crt',
    BOXWOOD_INCUS_KEY: '/etc/boxwood/incus.key',
    BOXWOOD_INCUS_POOL: 'fast',
    BOXWOOD_LOCAL_ISOLATION: 'process',
    BOXWOOD_LOCAL_NETWORK: 'host',
    BOXWOOD_PROTECTIONS: 'any',
    BOXWOOD_WARM: '3',
    BOXWOOD_SMTP_URL: 'smtps://user:password@mail.example.com',
    BOXWOOD_MAIL_FROM: 'Boxwood <boxwood@example.com>',
    BOXWOOD_SIGNUP: 'open',
    BOXWOOD_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8, fd00::/8',
    BOXWOOD_SECRETS_PRIVATE: '10.1.0.0/16,127.0.0.1',
  })
  t.match(config, {
    listen: { host: '::1', port: 0 },
    dataDir: '/srv/boxes',
    databaseUrl: 'postgresql:///boxwood?host=/run/postgresql',
    publicUrl: 'https://example.com/boxes',
    agentUrl: 'http://10.0.0.1:7070',
    logLevel: 'debug',
    logFormat: 'json',
    regions: new Map([
      ['eu-central-1', { kind: 'local', target: null }],
      ['us-east-1', { kind: 'local', target: null }],
    ]),
    dockerHost: 'unix:///run/docker.sock',
    podmanHost: 'tcp://10.0.0.1:2376',
    dockerSubnets: ['10.1.0.0/16', '10.2.0.0/24'],
    defaultImage: 'registry.example.com:5000/base@sha256:00',
    imageLimit: 12,
    imageGib: 50,
    incus: 'https://incus.example.com:8443',
    incusCert: '/etc/boxwood/incus.crt',
    incusKey: '/etc/boxwood/incus.key',
    incusPool: 'fast',
    isolation: 'process',
    network: 'host',
    protections: 'any',
    warm: 3,
    smtpUrl: 'smtps://user:password@mail.example.com',
    mailFrom: 'Boxwood <boxwood@example.com>',
    signup: true,
    trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'],
    secretsPrivate: ['10.1.0.0/16', '127.0.0.1'],
  })
  t.same(loadConfig({ BOXWOOD_LISTEN: 'localhost:65535' }).listen, { host: 'localhost', port: 65535 })
})

t.test('the share base is an origin, https unless it is localhost', async (t) => {
  for (const [text, origin] of Object.entries({
    'Boxes.example.com': 'https://boxes.example.com',
    'boxes.example.com:8443': 'https://boxes.example.com:8443',
    'localhost:7070': 'http://localhost:7070',
    'b.localhost': 'http://b.localhost',
    'https://localhost': 'https://localhost',
    'http://boxes.internal/': 'http://boxes.internal',
  }))
    t.equal(loadConfig({ BOXWOOD_SHARE_BASE: text }).shareBase, origin)
})

t.test('rejects invalid values', async (t) => {
  for (const [name, values] of Object.entries({
    BOXWOOD_LISTEN: ['7070', 'localhost', '127.0.0.1:65536', '::1:7070', 'http://a:1', ':7070', 'a b:1'],
    BOXWOOD_PUBLIC_URL: [
      'boxes.example.com',
      'ftp://a',
      'https://u:p@a',
      'https://a?b',
      'https://a/b?c',
      'https://a/b//c',
      'https://a/../b',
      'https://a/b%20c',
      'https://a/b//',
    ],
    BOXWOOD_AGENT_URL: ['10.0.0.1:7070'],
    BOXWOOD_WARM: ['-1', '21', '1.5', 'on'],
    BOXWOOD_LOG: ['loud'],
    BOXWOOD_LOG_FORMAT: ['text'],
    BOXWOOD_REGIONS: [
      'us-west-2',
      'mars=local',
      'us-west-2=cloud',
      'us-west-2=local=x',
      ',',
      'us-west-2=local,us-west-2=local',
    ],
    BOXWOOD_DOCKER_HOST: [
      'docker.sock',
      'ssh://host',
      'tcp://host',
      'unix://run/docker.sock',
      'http://host:1',
    ],
    BOXWOOD_PODMAN_HOST: ['unix://'],
    BOXWOOD_DOCKER_SUBNETS: ['10.0.0.0', '10.0.0.0/30', 'fd00::/8', '0.0.0.0/0', '10.0.0.0/16,'],
    BOXWOOD_DEFAULT_IMAGE: ['-debian', 'debian 12', 'a'.repeat(256)],
    BOXWOOD_INCUS: ['incus', 'http://host:8443', 'https://host/path'],
    BOXWOOD_INCUS_POOL: ['a/b'],
    BOXWOOD_LOCAL_ISOLATION: ['docker'],
    BOXWOOD_SNAPSHOT_LIMIT: ['0', '-1', '1.5', 'many', '1e3'],
    BOXWOOD_MAIL_FROM: ['boxwood', 'a@b, c@d', 'Boxwood <boxwood>', 'Box\nwood <a@b>'],
    BOXWOOD_SIGNUP: ['yes'],
    BOXWOOD_SHARES: ['yes'],
    BOXWOOD_DASHBOARD: ['1'],
    BOXWOOD_SHARE_LINKS: ['members'],
    BOXWOOD_SHARE_BASE: [
      '127.0.0.1',
      '[::1]:7070',
      'https://a/path',
      'ftp://a',
      '*.boxes.example.com',
      'u@a',
      'a:70000',
    ],
    BOXWOOD_TRUSTED_PROXIES: ['all', '10.0.0.0/33', '10.0.0.1,'],
    BOXWOOD_SECRETS_PRIVATE: ['on', '10.0.0.0/33'],
  }))
    for (const value of values)
      t.throws(() => loadConfig({ [name]: value }), { message: new RegExp(`^${name} must .*; it is "`) })
})

t.test('the error message for an SMTP URL does not contain its password', async (t) => {
  for (const url of ['http://user:pass-word@mail.example.com', 'smtp:', 'mail.example.com'])
    t.throws(() => loadConfig({ BOXWOOD_SMTP_URL: url }), { message: /^BOXWOOD_SMTP_URL must be [^;]*$/ })
})

t.test('reports all invalid variables together', async (t) => {
  t.throws(() => loadConfig({ BOXWOOD_LISTEN: 'x', BOXWOOD_LOG: 'loud', BOXWOOD_SNAPSHOT_LIMIT: '0' }), {
    message: /^BOXWOOD_LOG .*"loud"\.\nBOXWOOD_LISTEN .*\nBOXWOOD_SNAPSHOT_LIMIT .*$/,
  })
})

t.test('payments by card need the secrets of Stripe, whose values are not in messages', async (t) => {
  const [key, secret] = ['sk_test_0123456789', 'whsec_0123456789']
  for (const env of [{ BOXWOOD_STRIPE_KEY: key }, { BOXWOOD_STRIPE_WEBHOOK_SECRET: secret }])
    t.throws(() => loadConfig({ BOXWOOD_BILLING: 'stripe', ...env }), {
      message: /^BOXWOOD_BILLING=stripe needs BOXWOOD_STRIPE_KEY and BOXWOOD_STRIPE_WEBHOOK_SECRET\./,
    })
  t.match(
    loadConfig({
      BOXWOOD_BILLING: 'stripe',
      BOXWOOD_STRIPE_KEY: key,
      BOXWOOD_STRIPE_WEBHOOK_SECRET: secret,
    }),
    { billing: 'stripe', stripeKey: key, stripeWebhookSecret: secret },
  )
  t.throws(() => loadConfig({ BOXWOOD_STRIPE_KEY: 'a b' }), { message: /^BOXWOOD_STRIPE_KEY must be [^;]*$/ })
  t.throws(() => loadConfig({ BOXWOOD_AUTO_TOP_UP: '4.99' }), { message: /must be at least 5\.00/ })
})

t.test('an issuer is what AWS accepts', async (t) => {
  for (const issuer of ['https://boxes.example.com', 'https://example.com/a/oidc'])
    t.equal(loadConfig({ BOXWOOD_OIDC_ISSUER: issuer }).oidcIssuer, issuer)
  for (const issuer of [
    ...['http://example.com', 'https://example.com/', 'https://example.com:8443', 'https://Example.com'],
    ...['https://example.com/a/', 'https://example.com/?a', 'https://a@example.com', 'example.com'],
  ])
    t.throws(() => loadConfig({ BOXWOOD_OIDC_ISSUER: issuer }), { message: /BOXWOOD_OIDC_ISSUER/ }, issuer)
  for (const url of ['http://b.s3.amazonaws.com/a', 'https://example.com/a.yaml'])
    t.throws(() => loadConfig({ BOXWOOD_AWS_TEMPLATE_URL: url }), { message: /in S3/ }, url)
  t.equal(
    loadConfig({ BOXWOOD_AWS_TEMPLATE_URL: 'https://b.s3.eu-central-1.amazonaws.com/a.yaml' }).awsTemplateUrl,
    'https://b.s3.eu-central-1.amazonaws.com/a.yaml',
  )
  t.throws(() => loadConfig({ AWS_REGION: 'Frankfurt' }), { message: /AWS_REGION/ })
  t.throws(() => loadConfig({ AWS_ENDPOINT_URL_STS: 'sts' }), { message: /AWS_ENDPOINT_URL_STS/ })
})

t.test('reads limits from a file, and names what is wrong in it', async (t) => {
  const file = join(createTempDir(t, 'limits'), 'limits.json')
  const load = (content: string) => {
    writeFileSync(file, content)
    return loadConfig({ BOXWOOD_LIMITS: file }).limits
  }
  t.same(load('{}'), loadConfig({}).limits)
  t.same(load('{"edgeStreams":32,"promptRuns":8}'), {
    ...loadConfig({}).limits,
    edgeStreams: 32,
    promptRuns: 8,
  })
  for (const [content, problem] of Object.entries({
    '{': 'is not JSON',
    '[]': 'the content must be a JSON object',
    '{"edgeRate":1}': 'unknown field edgeRate',
    '{"edgeStreams":0}': 'edgeStreams must be ',
    '{"edgeStreams":1.5}': 'edgeStreams must be ',
    '{"edgeStreams":"8"}': 'edgeStreams must be ',
    '{"headersTimeoutSeconds":3601}': 'headersTimeoutSeconds must be ',
    '{"logBytes":32767}': 'logBytes must be ',
    '{"promptRuns":65}': 'promptRuns must be ',
    '{"promptMinutes":10081}': 'promptMinutes must be ',
  }))
    t.throws(
      () => load(content),
      { name: 'ConfigError', message: new RegExp(`limits\\.json.*${problem}`) },
      content,
    )
  rmSync(file)
  t.throws(() => loadConfig({ BOXWOOD_LIMITS: file }), {
    message: /^BOXWOOD_LIMITS: .*limits\.json cannot be read: ENOENT/,
  })
})

/** The rows of a table of the page whose first cell matches: the name → the default. */
function readTable(name: RegExp): Map<string | undefined, string | undefined> {
  const page = readFileSync(join(PROJECT_DIR, 'docs/configuration.md'), 'utf8')
  const rows = page.split('\n').map((row) => row.split('|').map((cell) => cell.trim()))
  return new Map(
    rows.filter(([, cell = '']) => name.test(cell)).map(([, cell, fallback]) => [cell, fallback]),
  )
}

t.test('the documentation lists every variable and limit with its default', async (t) => {
  const variables = readTable(/^`(BOXWOOD|AWS)_/)
  const settings = SETTINGS.flatMap((group): Setting[] => Object.values(group.settings))
  for (const { variable, default: fallback, shownDefault = `\`${fallback}\`` } of settings)
    t.equal(variables.get(`\`${variable}\``), shownDefault, variable)
  t.equal(variables.size, settings.length, 'the page lists no other variable')
  const limits = Object.entries(loadConfig({}).limits)
  const shown = readTable(/^`[a-z]+[A-Za-z]+`$/)
  for (const [name, fallback] of limits) t.equal(shown.get(`\`${name}\``), `\`${fallback}\``, name)
})

t.test('a replica needs a database and URLs that lead to all replicas', async (t) => {
  const env = {
    BOXWOOD_REPLICA_URL: 'http://10.0.0.4:7070/',
    BOXWOOD_DATABASE_URL: 'postgres://db/boxwood',
    BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
    BOXWOOD_AGENT_URL: 'https://boxes.example.com',
  }
  t.equal(loadConfig(env).replicaUrl, 'http://10.0.0.4:7070')
  for (const name of ['BOXWOOD_DATABASE_URL', 'BOXWOOD_PUBLIC_URL', 'BOXWOOD_AGENT_URL'])
    t.throws(() => loadConfig({ ...env, [name]: undefined }), /BOXWOOD_REPLICA_URL needs/)
  for (const url of ['10.0.0.4:7070', 'http://10.0.0.4:7070/path', 'ftp://10.0.0.4'])
    t.throws(() => loadConfig({ ...env, BOXWOOD_REPLICA_URL: url }), /BOXWOOD_REPLICA_URL/)
})
