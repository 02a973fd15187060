// The host names of links.
import { getDomain } from 'tldts'
import type { ShareBase } from './types.ts'

/**
 * @param origin the share base, such as `https://boxes.example.com`
 * @param otherUrls URLs of the coordinator, whose names may be under the share base and are not those of links
 */
export function createShareBase(origin: string, otherUrls: readonly string[]): ShareBase {
  const { protocol, host, hostname } = new URL(origin)
  const otherNames = new Set(otherUrls.map((other) => new URL(other).hostname))
  return {
    getOrigin: (slug) => `${protocol}//${slug}.${host}`,
    parseHost(text) {
      const name = parseName(text ?? '')
      if (!name.endsWith(`.${hostname}`) || otherNames.has(name)) return undefined
      return name.slice(0, -hostname.length - 1)
    },
  }
}

/**
 * The name of a Host header in lowercase, without a port and the dot of the root. What clients other than browsers may send is
 * removed too, such as userinfo and a port that is no number: a name under the share base must be found in every form.
 */
function parseName(host: string): string {
  const address = host.toLowerCase().trim().replace(/^.*@/, '')
  const name = address.startsWith('[') ? address.replace(/\].*$/, ']') : address.replace(/:.*$/, '')
  return name.replace(/\.+$/, '')
}

/** @param listener the origin at which the coordinator listens */
export const getDefaultOrigin = (listener: string): string =>
  new URL(`http://localhost:${new URL(listener).port || 80}`).origin

/**
 * Returns the domain of the site that links and the coordinator have in common, such as `example.com`; null: they are on two
 * sites. The pages of one site can set cookies for each other. Names under a suffix of the Public Suffix List are sites of their
 * own.
 */
export function findCommonSite(shareBase: string, publicUrl: string): string | null {
  // The site of a link: the share base itself may be a public suffix.
  const site = getSite(new URL(createShareBase(shareBase, []).getOrigin('link')).hostname)
  return site !== null && site === getSite(new URL(publicUrl).hostname) ? site : null
}

const getSite = (hostname: string): string | null => getDomain(hostname, { allowPrivateDomains: true })
