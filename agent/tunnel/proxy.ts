// HTTP proxies between the agent and the coordinator, from the variables https_proxy, http_proxy, all_proxy and no_proxy.
import type { Agent } from 'node:http'

/** Returns the agent for requests to this URL of the coordinator. Undefined: no proxy. */
export type SelectProxy = (url: string) => Agent | undefined

export const noProxy: SelectProxy = () => undefined

const PROXY_VARIABLES = ['https_proxy', 'http_proxy', 'all_proxy']
type Environment = Readonly<Record<string, string | undefined>>

/** The proxies of this environment, in the notation that proxy-from-env reads as curl reads the original. */
export function readProxyVariables(env: Environment): Record<string, string> {
  const read = (name: string) => env[name] || env[name.toUpperCase()]
  const found: Record<string, string> = {}
  for (const name of PROXY_VARIABLES) {
    const value = read(name)
    if (value) found[name] = value.includes('://') ? value : `http://${value}`
  }
  const exceptions = read('no_proxy')
  if (exceptions) found.no_proxy = addSubdomains(exceptions)
  return found
}

/** In curl, example.com includes its subdomains, with or without a dot before it. */
const addSubdomains = (exceptions: string): string =>
  exceptions
    .split(/[,\s]+/)
    .flatMap((entry) => {
      const domain = entry.replace(/^\*?\./, '')
      return domain === '' || domain.startsWith('*') ? entry : [domain, `.${domain}`]
    })
    .filter((entry) => entry !== '')
    .join(',')

/**
 * Every connection is a tunnel through the proxy (CONNECT), also to an http:// coordinator: few proxies forward the
 * handshake of a WebSocket in another way. Loads the packages, and changes process.env, only if there is a proxy.
 */
export async function createProxySelector(): Promise<SelectProxy> {
  const variables = readProxyVariables(process.env)
  if (PROXY_VARIABLES.every((name) => variables[name] === undefined)) return noProxy
  Object.assign(process.env, variables)
  const [{ HttpsProxyAgent }, { getProxyForUrl }] = await Promise.all([
    import('https-proxy-agent'),
    import('proxy-from-env'),
  ])
  const agents = new Map<string, Agent>()
  return (url) => {
    const proxy = /^https?:/.test(url) ? getProxyForUrl(url) : ''
    if (proxy === '') return undefined
    const agent = agents.get(proxy) ?? new HttpsProxyAgent(proxy)
    agents.set(proxy, agent)
    return agent
  }
}
