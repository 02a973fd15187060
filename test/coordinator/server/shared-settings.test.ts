// Which settings two coordinators of one database must share: differences that matter, and those that do not.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DEFAULT_PRICES } from '../../../coordinator/billing/prices.ts'
import { loadConfig, SETTINGS } from '../../../coordinator/server/config.ts'
import {
  describeSharedSettings,
  findDifferences,
  formatDifferences,
} from '../../../coordinator/server/shared-settings/compare.ts'
import { SETTING_RULES } from '../../../coordinator/server/shared-settings/setting-rules.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const describe = (env: Record<string, string> = {}) => describeSharedSettings(loadConfig(env), null)

const SECRET = 'sk_live_0123456789'

/** Another value of each shared setting, which is not the default. */
const SHARED: Readonly<Record<string, string>> = {
  BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
  BOXWOOD_AGENT_URL: 'https://agents.example.com',
  BOXWOOD_DASHBOARD: 'off',
  BOXWOOD_SMTP_URL: 'smtps://user:password@mail.example.com',
  BOXWOOD_MAIL_FROM: 'boxes@example.com',
  BOXWOOD_SIGNUP: 'open',
  BOXWOOD_PURGE_DAYS: '7',
  BOXWOOD_AUDIT_SINK_PRIVATE: 'on',
  BOXWOOD_COMMAND_RETENTION_DAYS: '7',
  BOXWOOD_REGIONS: 'us-west-2=incus/@fast,us-east-1=local',
  BOXWOOD_LOCAL_ISOLATION: 'process',
  BOXWOOD_LOCAL_NETWORK: 'host',
  BOXWOOD_PROTECTIONS: 'any',
  BOXWOOD_DEFAULT_IMAGE: 'debian:13',
  BOXWOOD_DOCKER_SUBNETS: '10.214.0.0/16',
  BOXWOOD_INCUS_POOL: 'fast',
  BOXWOOD_FREEZE_MINUTES: '5',
  BOXWOOD_DEEP_SLEEP_DAYS: '7',
  BOXWOOD_DELETED_BOX_DAYS: '7',
  BOXWOOD_SNAPSHOT_LIMIT: '7',
  BOXWOOD_FINAL_SNAPSHOTS: 'on',
  BOXWOOD_IMAGE_LIMIT: '7',
  BOXWOOD_IMAGE_GIB: '7',
  BOXWOOD_SHARES: 'off',
  BOXWOOD_SHARE_LINKS: 'off',
  BOXWOOD_SHARE_BASE: 'shares.example.com',
  BOXWOOD_SECRETS_PRIVATE: '10.0.0.0/8',
  BOXWOOD_BILLING: 'manual',
  BOXWOOD_FREE_CREDIT: '1.00',
  BOXWOOD_BALANCE_WARN_HOURS: '7',
  BOXWOOD_STRIPE_KEY: SECRET,
  BOXWOOD_STRIPE_WEBHOOK_SECRET: SECRET,
  BOXWOOD_AUTO_TOP_UP: '7.00',
  BOXWOOD_CARD_OVERDRAFT: '7.00',
  BOXWOOD_OIDC_ISSUER: 'https://boxes.example.com/oidc',
  BOXWOOD_AWS_TEMPLATE_URL: 'https://bucket.s3.us-east-1.amazonaws.com/boxwood-role.yaml',
  BOXWOOD_MCP: 'on',
}

t.test('a shared setting that differs is named', async (t) => {
  const defaults = describe()
  t.same(findDifferences(defaults, describe()), [])
  for (const [variable, value] of Object.entries(SHARED)) {
    const other = describe({ [variable]: value })
    t.same(findDifferences(defaults, other), [variable])
    t.same(findDifferences(other, describe({ [variable]: value })), [])
  }
  const differences = findDifferences(defaults, describe({ BOXWOOD_SIGNUP: 'open', BOXWOOD_MCP: 'on' }))
  t.equal(
    formatDifferences(differences, 'host-2'),
    '2 settings of this coordinator and of host-2, which uses the same database, differ: BOXWOOD_SIGNUP, BOXWOOD_MCP. Give all coordinators of the database the same values. To change a value, stop all of them first.',
  )
})

t.test('each setting has a rule, and each shared one is compared', async (t) => {
  const variables = SETTINGS.flatMap(({ settings }) => Object.entries(settings)).map(
    ([field, { variable }]) => ({ field: field as keyof typeof SETTING_RULES, variable }),
  )
  t.same(
    Object.keys(SETTING_RULES),
    variables.map(({ field }) => field),
    'in their order',
  )
  const shared = variables.filter(({ field }) => 'shared' in SETTING_RULES[field])
  t.same(
    Object.keys(SHARED),
    shared.map(({ variable }) => variable),
  )
  t.same(
    Object.keys(describe()).filter((name) => !(name in SHARED) && !name.endsWith(' in BOXWOOD_LIMITS')),
    ['BOXWOOD_PRICES'],
    'the content of the file is compared',
  )
})

t.test('what depends on the machine may differ', async (t) => {
  const machine = {
    BOXWOOD_DATA: '/srv/boxwood',
    BOXWOOD_MASTER_KEYS: '/run/secrets/keys',
    BOXWOOD_LISTEN: '10.0.0.2:7070',
    BOXWOOD_DATABASE_URL: 'postgres://replica@10.0.0.9/boxwood',
    BOXWOOD_TRUSTED_PROXIES: '10.0.0.0/8',
    BOXWOOD_DOCKER_HOST: 'tcp://10.0.0.3:2375',
    BOXWOOD_WARM: '3',
    BOXWOOD_METRICS_TOKEN: 'x'.repeat(16),
    BOXWOOD_LOG: 'debug',
    AWS_REGION: 'eu-central-1',
  }
  t.same(findDifferences(describe(), describe(machine)), [])
  const mail = (password: string) =>
    describe({ BOXWOOD_SMTP_URL: `smtp://user:${password}@mail.example.com` })
  t.same(findDifferences(mail('one'), mail('two')), [], 'a password that is being replaced')
})

t.test('equal values in other notations are equal', async (t) => {
  const first = describe({
    BOXWOOD_PUBLIC_URL: 'https://boxes.example.com/',
    BOXWOOD_SECRETS_PRIVATE: '10.0.0.0/8, 192.168.0.1',
    BOXWOOD_FREE_CREDIT: '5',
  })
  const second = describe({
    BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
    BOXWOOD_SECRETS_PRIVATE: '192.168.0.1,10.0.0.0/8',
    BOXWOOD_FREE_CREDIT: '5.00',
  })
  t.same(findDifferences(first, second), [])
})

t.test('the content of the files of limits and prices is compared', async (t) => {
  const dir = createTempDir(t, 'limits')
  const withLimits = (name: string, limits: Record<string, number>) => {
    const file = join(dir, name)
    writeFileSync(file, JSON.stringify(limits))
    return describe({ BOXWOOD_LIMITS: file })
  }
  const first = withLimits('first', { terminals: 5, edgeStreams: 6 })
  const second = withLimits('second', { edgeStreams: 6, terminals: 5, maxConnections: 100 })
  t.same(findDifferences(first, second), [], 'the connections depend on the machine')
  t.same(findDifferences(first, describe()), ['edgeStreams in BOXWOOD_LIMITS', 'terminals in BOXWOOD_LIMITS'])

  const config = loadConfig({ BOXWOOD_BILLING: 'manual' })
  const [prices] = DEFAULT_PRICES
  if (prices === undefined) throw new Error('there are no default prices')
  const own = describeSharedSettings(config, DEFAULT_PRICES)
  t.same(findDifferences(own, describeSharedSettings(config, [{ ...prices }])), [])
  t.same(findDifferences(own, describeSharedSettings(config, [{ ...prices, diskGb: 1 }])), ['BOXWOOD_PRICES'])
})

t.test('the description contains no secret, and survives JSON', async (t) => {
  const described = describe(SHARED)
  const text = JSON.stringify(described)
  t.notMatch(text, SECRET)
  t.notMatch(text, 'password')
  t.match(described.BOXWOOD_STRIPE_KEY, /^sha256:[0-9a-f]{64}$/)
  t.same(findDifferences(JSON.parse(text), described), [])
})

t.test('a setting that the other version does not know is no difference', async (t) => {
  t.same(findDifferences({ ...describe(), BOXWOOD_NEW: 'on' }, describe()), [])
  t.same(findDifferences(describe(), { ...describe(), BOXWOOD_NEW: 'on' }), [])
})
