// Checks the hosts of a secret (spec §2.8, §7.1): host names, and wildcards below a domain that one owner controls.
import { domainToASCII } from 'node:url'
import { getPublicSuffix } from 'tldts'
import { ApiError } from '../../shared/errors.ts'
import { coversHost } from '../../shared/secret-hosts.ts'

export type HostRules = {
  /** Host names of the coordinator, in lowercase. */
  ownNames: readonly string[]
  /** The host name above the links of shared ports: boxes serve every name below it. */
  shareHost: string
  /** Whether names without a period are accepted: the operator admits private addresses. */
  allowsSingleLabels: boolean
}

/** domainToASCII() ignores what follows a character that ends a host in a URL, so other ASCII characters are refused first. */
const CHARACTERS = /^(?:[a-z0-9.-]|[^\0-\x7f])+$/
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const MAX_NAME_CHARS = 253
const MAX_SHOWN_CHARS = 64

/**
 * Returns the hosts in lowercase ASCII without final periods, each once, in their order.
 * @throws ApiError invalid_host, which names the entry
 */
export function normalizeHosts(hosts: readonly string[], rules: HostRules): string[] {
  return [...new Set(hosts.map((host, index) => normalizeHost(host, index, rules)))]
}

function normalizeHost(text: string, index: number, rules: HostRules): string {
  const lower = text.toLowerCase().replace(/\.$/, '')
  const isWildcard = lower.startsWith('*.')
  const name = toAscii(isWildcard ? lower.slice(2) : lower)
  const refuse = (rule: string): never => {
    const shown = text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text
    throw new ApiError('invalid_host', `hosts[${index}] ${JSON.stringify(shown)} ${rule}`, {
      fields: { host: shown },
    })
  }
  if (name === undefined)
    return refuse(
      'must be a host name such as api.example.com, or a wildcard such as *.example.com, without scheme, port and path',
    )
  if (isAddress(name)) return refuse('must be a host name, not an IP address')
  if (isWildcard && getPublicSuffix(name, { allowPrivateDomains: true }) === name)
    return refuse('must not cover a public suffix, below which everyone can register names')
  if (!name.includes('.') && !rules.allowsSingleLabels)
    return refuse('must be a host name with a domain, such as api.example.com')
  const pattern = isWildcard ? `*.${name}` : name
  if (isOwnName(pattern, name, rules))
    return refuse('must not be, or cover, a name of this coordinator or of its shared ports')
  return pattern
}

/** undefined: not a host name. */
function toAscii(text: string): string | undefined {
  if (!CHARACTERS.test(text)) return undefined
  const name = domainToASCII(text)
  if (name === '' || name.length > MAX_NAME_CHARS) return undefined
  return name.split('.').every((label) => LABEL.test(label)) ? name : undefined
}

/** Clients parse a name as an IPv4 address when its last label is a number, also in hexadecimal. */
const isAddress = (name: string): boolean => /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/.test(name)

function isOwnName(pattern: string, name: string, { ownNames, shareHost }: HostRules): boolean {
  const isBelowShares = name === shareHost || coversHost(`*.${shareHost}`, name)
  const coversShares = pattern.startsWith('*.') && coversHost(pattern, `share.${shareHost}`)
  return isBelowShares || coversShares || ownNames.some((own) => coversHost(pattern, own))
}

/** Whether every host of the pattern is covered by one of the patterns. */
const isCovered = (pattern: string, patterns: readonly string[]): boolean =>
  patterns.some(
    (other) => other === pattern || coversHost(other, pattern.startsWith('*.') ? pattern.slice(2) : pattern),
  )

/** The patterns of `before` that have hosts which `after` does not cover. */
export const listNarrowed = (before: readonly string[], after: readonly string[]): string[] =>
  before.filter((pattern) => !isCovered(pattern, after))
