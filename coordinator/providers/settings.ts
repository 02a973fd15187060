// What runs the boxes: environment variables.

import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { BOX_NETWORKS, ISOLATION_LEVELS } from '../../shared/api/boxes.ts'
import { IMAGE_PATTERN } from '../../shared/field-values.ts'
import { REGIONS, type Region } from '../../shared/tiers.ts'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { file, oneOf } from '../base/setting-schemas.ts'
import { LOG_LEVELS } from '../base/settings.ts'

/** The kinds of providers. */
export const PROVIDER_KINDS = ['local', 'docker', 'podman', 'incus'] as const
export type ProviderKind = (typeof PROVIDER_KINDS)[number]
/** The provider of a region. `target` is where Incus places the boxes: a member of the cluster, or `@` and a group. */
export type RegionProvider = { kind: ProviderKind; target: string | null }

/** As in BOXWOOD_REGIONS. */
export const formatProvider = ({ kind, target }: RegionProvider): string =>
  target === null ? kind : `${kind}/${target}`

const ISOLATION_CHOICES = ['auto', ...ISOLATION_LEVELS] as const
const NETWORK_CHOICES = ['auto', ...BOX_NETWORKS] as const
const PROTECTIONS_CHOICES = ['keep', 'any'] as const

const isRegion = (text: string): text is Region => (REGIONS as readonly string[]).includes(text)

/** Null: no valid provider. */
function parseProvider(text: string): RegionProvider | null {
  const [name = '', target = null, ...rest] = text.split('/')
  const kind = PROVIDER_KINDS.find((known) => known === name)
  if (kind === undefined || rest.length > 0) return null
  if (target !== null && (kind !== 'incus' || !/^@?[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(target)))
    return null
  return { kind, target }
}

const regions = z.string().transform((text, context) => {
  const entries = text.split(',').map((entry) => entry.split('=').map((part) => part.trim()))
  const chosen = new Map<Region, RegionProvider>()
  for (const [region = '', provider = '', ...rest] of entries) {
    const parsed = parseProvider(provider)
    if (isRegion(region) && parsed !== null && rest.length === 0 && !chosen.has(region))
      chosen.set(region, parsed)
  }
  if (chosen.size === entries.length) return chosen
  context.addIssue(
    `must be a comma-separated list of region=provider, each region once, such as us-west-2=local,us-east-1=docker. Regions: ${REGIONS.join(', ')}. Providers: ${PROVIDER_KINDS.join(', ')}; incus/MEMBER or incus/@GROUP places boxes on a part of a cluster`,
  )
  return z.NEVER
})

/** Null: the address is no unix: or tcp: URL. */
const parseEngineUrl = (text: string): string | null => {
  if (text.startsWith('/')) return `unix://${text}`
  if (/^unix:\/\/\/[^/]/.test(text)) return text
  const url = /^tcp:\/\//.test(text) ? URL.parse(text) : null
  return url !== null && url.hostname !== '' && url.port !== '' && /^\/?$/.test(url.pathname) ? text : null
}

const engineUrl = z.string().transform((text, context) => {
  const address = parseEngineUrl(text)
  if (address !== null) return address
  context.addIssue(
    text.startsWith('ssh:')
      ? 'must not be an ssh: URL: let ssh forward the socket (`ssh -N -L /tmp/docker.sock:/var/run/docker.sock HOST`), and use unix:///tmp/docker.sock'
      : 'must be unix:///PATH or tcp://HOST:PORT, such as unix:///var/run/docker.sock',
  )
  return z.NEVER
})

const incusAddress = z.string().transform((text, context) => {
  const path = text.replace(/^unix:\/\//, '')
  if (path.startsWith('/')) return path
  const url = URL.parse(text)
  if (url?.protocol === 'https:' && /^\/?$/.test(url.pathname)) return url.origin
  context.addIssue('must be the path of a socket or an https URL, such as https://incus.example.com:8443')
  return z.NEVER
})

/** Each box uses a /29. */
const SUBNET_BITS = { min: 8, max: 29 }

const subnets = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .refine((entries) => {
    return entries.every((entry) => {
      if (!ipaddr.IPv4.isValidCIDR(entry)) return false
      const [, bits] = ipaddr.IPv4.parseCIDR(entry)
      return bits >= SUBNET_BITS.min && bits <= SUBNET_BITS.max
    })
  }, 'must be a comma-separated list of IPv4 ranges of /8 to /29, such as 10.213.0.0/16')

const image = z.string().regex(IMAGE_PATTERN, 'must be the name of an image, such as debian:12')

const incusName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be the name of a storage pool, such as default')

export const PROVIDER_SETTINGS = defineSettings(
  {
    regions: {
      variable: 'BOXWOOD_REGIONS',
      default: REGIONS.map((region) => `${region}=local`).join(','),
      shownDefault: 'all, `local`',
      description:
        'the regions in which boxes can be created, and the provider of each, as `region=provider`, separated by commas: `local`, `docker`, `podman` or `incus`',
      schema: regions,
    },
    agentLogLevel: {
      variable: 'BOXWOOD_AGENT_LOG',
      default: 'info',
      description: 'log level of the agents of local boxes, which log into the directories of their boxes',
      schema: oneOf(LOG_LEVELS),
    },
    isolation: {
      variable: 'BOXWOOD_LOCAL_ISOLATION',
      default: 'auto',
      description: 'bubblewrap, namespaces or process; auto picks the strongest level that works',
      schema: oneOf(ISOLATION_CHOICES),
    },
    network: {
      variable: 'BOXWOOD_LOCAL_NETWORK',
      default: 'auto',
      description: 'own or host; auto gives each box its own network where that works',
      schema: oneOf(NETWORK_CHOICES),
    },
    protections: {
      variable: 'BOXWOOD_PROTECTIONS',
      default: 'keep',
      description:
        'keep refuses boxes where a limit of CPUs, memory or processes, a filter of system calls or the user ids of an engine protected them before and do not now; any accepts this',
      schema: oneOf(PROTECTIONS_CHOICES),
    },
    defaultImage: {
      variable: 'BOXWOOD_DEFAULT_IMAGE',
      default: 'debian:12',
      description: 'the image of a box that is created without one, in a region with images',
      schema: image,
    },
    dockerHost: {
      variable: 'BOXWOOD_DOCKER_HOST',
      default: null,
      shownDefault: 'found',
      description:
        'the address of the Docker engine, `unix:///PATH` or `tcp://HOST:PORT`; without it, that of the `docker` command',
      schema: engineUrl,
    },
    podmanHost: {
      variable: 'BOXWOOD_PODMAN_HOST',
      default: null,
      shownDefault: 'found',
      description:
        'the address of the Podman engine, `unix:///PATH` or `tcp://HOST:PORT`; without it, that of the `podman` command',
      schema: engineUrl,
    },
    dockerSubnets: {
      variable: 'BOXWOOD_DOCKER_SUBNETS',
      default: '10.213.0.0/16',
      description:
        'IPv4 ranges, separated by commas, from which each box of Docker or Podman gets a network of its own, a /29',
      schema: subnets,
    },
    incus: {
      variable: 'BOXWOOD_INCUS',
      default: null,
      shownDefault: 'found',
      description:
        'the path of the socket of the Incus server, or the https URL of a server or a member of a cluster',
      schema: incusAddress,
    },
    incusCert: {
      variable: 'BOXWOOD_INCUS_CERT',
      default: null,
      shownDefault: 'none',
      description:
        'the file of the client certificate that the Incus server trusts, in the PEM format; for an https URL',
      schema: file,
    },
    incusKey: {
      variable: 'BOXWOOD_INCUS_KEY',
      default: null,
      shownDefault: 'none',
      description: 'the file of the private key of that certificate, in the PEM format',
      schema: file,
    },
    incusServerCert: {
      variable: 'BOXWOOD_INCUS_SERVER_CERT',
      default: null,
      shownDefault: 'those of Node',
      description: 'the file of the certificate of the Incus server or cluster, in the PEM format',
      schema: file,
    },
    incusPool: {
      variable: 'BOXWOOD_INCUS_POOL',
      default: null,
      shownDefault: 'that of the profile `default`',
      description: 'the storage pool of the Incus boxes; btrfs and zfs pools take snapshots at once',
      schema: incusName,
    },
  },
  ({ incusCert, incusKey }) =>
    (incusCert === null) === (incusKey === null)
      ? null
      : 'BOXWOOD_INCUS_CERT and BOXWOOD_INCUS_KEY must be set together.',
)

export type ProviderSettings = SettingsOf<typeof PROVIDER_SETTINGS>
