// Which settings must be the same at all coordinators of one database, and why.
import type { Limits } from '../../base/limits.ts'
import type { Config } from '../config.ts'

/**
 * shared: why all coordinators need the same value. own: why each may have another one. `onlyWhether`: the values may differ, but
 * either all coordinators have one or none.
 */
export type SettingRule = { shared: string; onlyWhether?: true } | { own: string }

const FILE = 'the path of a file of this machine'
const ADDRESS = 'an address of this machine'
const ENGINE = 'the same engine has different addresses on different machines'
const MACHINE = 'depends on what this machine serves and records'

const ROUTING = 'a client gets the same answer, whichever coordinator its request arrives at'
const ISOLATION = 'a box is protected equally, whichever coordinator creates it'
const JOBS = 'any coordinator runs the jobs and schedules that use it'
const KEPT = 'what one coordinator keeps, another must not delete'
const MONEY = 'the balance of a workspace does not depend on the coordinator that charges it'

/** In the order of the settings. */
export const SETTING_RULES: Readonly<Record<Exclude<keyof Config, 'limits' | 'traces'>, SettingRule>> = {
  dataDir: { own: 'a directory of this machine' },
  masterKeysFile: { own: `${FILE}; each start compares the keys with the database` },
  limitsFile: { own: `${FILE}; its content is compared` },
  logLevel: { own: MACHINE },
  logFormat: { own: MACHINE },
  databaseUrl: { own: 'one database has several addresses and users' },
  listen: { own: ADDRESS },
  publicUrl: { shared: 'links, mails and sign-ins lead to any coordinator' },
  agentUrl: { shared: 'an agent keeps this URL, and must find another coordinator when its own has stopped' },
  tlsListen: { own: ADDRESS },
  tlsCert: { own: FILE },
  tlsKey: { own: FILE },
  trustedProxies: { own: 'the proxies in the network of this machine' },
  dashboard: { shared: ROUTING },
  replicaUrl: { own: ADDRESS },
  metricsListen: { own: ADDRESS },
  metricsToken: { own: 'the metrics of each coordinator are read separately' },
  // The URL may have a password that is being replaced, and machines may have relays of their own.
  smtpUrl: {
    shared: 'without it, a coordinator prints sign-in codes instead of sending them',
    onlyWhether: true,
  },
  mailFrom: { shared: 'any coordinator sends the mails' },
  signup: { shared: 'a closed sign-up must be closed everywhere' },
  purgeDays: { shared: KEPT },
  auditSinkPrivate: { shared: 'any coordinator delivers an audit log' },
  commandDays: { shared: KEPT },
  regions: { shared: 'a box is created in its region, and continues there, at any coordinator' },
  agentLogLevel: { own: MACHINE },
  isolation: { shared: ISOLATION },
  network: { shared: ISOLATION },
  protections: { shared: ISOLATION },
  defaultImage: { shared: 'boxes are equal, whichever coordinator creates them' },
  dockerHost: { own: ENGINE },
  podmanHost: { own: ENGINE },
  dockerSubnets: { shared: 'the networks of an engine are assigned by one coordinator after the other' },
  incus: { own: ENGINE },
  incusCert: { own: FILE },
  incusKey: { own: FILE },
  incusServerCert: { own: FILE },
  incusPool: { shared: 'the boxes of a server are in one pool, whichever coordinator creates them' },
  warm: { own: 'depends on the memory of this machine' },
  freezeMinutes: { shared: JOBS },
  deepSleepDays: { shared: JOBS },
  deletedBoxDays: { shared: KEPT },
  snapshotLimit: { shared: ROUTING },
  finalSnapshots: { shared: KEPT },
  imageLimit: { shared: KEPT },
  imageGib: { shared: KEPT },
  shares: { shared: 'ports that must not be shared are shared nowhere' },
  shareLinks: { shared: 'ports that must not be shared are shared nowhere' },
  shareBase: { shared: 'the host name of a link leads to any coordinator' },
  secretsPrivate: { shared: 'servers that must not get secrets get them from no coordinator' },
  billing: { shared: MONEY },
  pricesFile: { own: `${FILE}; its content is compared` },
  freeCreditMicros: { shared: MONEY },
  balanceWarnHours: { shared: JOBS },
  stripeKey: { shared: 'payments go to one account of Stripe' },
  stripeWebhookSecret: { shared: 'an event of Stripe arrives at any coordinator' },
  autoTopUpMicros: { shared: MONEY },
  cardOverdraftMicros: { shared: MONEY },
  oidcIssuer: { shared: 'the tokens of boxes have one issuer, which clouds know' },
  awsTemplateUrl: { shared: ROUTING },
  awsStsEndpoint: { own: 'the endpoint that the network of this machine reaches' },
  awsRegion: { own: 'roles are the same in all regions, and AWS sets the variable for each machine' },
  mcp: { shared: ROUTING },
}

/** The limits of BOXWOOD_LIMITS that depend on the machine and its proxies. All others are shared. */
export const OWN_LIMITS: ReadonlySet<keyof Limits> = new Set([
  'maxConnections',
  'addressConnections',
  'headersTimeoutSeconds',
  'idleTimeoutSeconds',
])
