// The coordinator's URL: http://, https://, or unix: and the path of a socket, for a local box.

/** The URL has no trailing slash. `unix:` has the absolute path of a socket, without a colon. */
const COORDINATOR_URL = /^(https?:\/\/[^\s/?#]+(\/[^\s?#]*)?|unix:\/[^:]+)$/

export const isCoordinatorUrl = (url: string): boolean => COORDINATOR_URL.test(url)

const UNIX = 'unix:'

/** Whether the coordinator listens on a socket of this machine. */
export const isUnixSocket = (url: string): boolean => url.startsWith(UNIX)

/** The URL of a WebSocket, in the notation of the `ws` package. `path` starts with a slash. */
export const toWebSocketUrl = (url: string, path: string): string =>
  isUnixSocket(url) ? `ws+${url}:${path}` : url.replace(/^http/, 'ws') + path

/** The target of an HTTP request, as options of node:http or node:https. `path` starts with a slash. */
export function toRequestTarget(url: string, path: string) {
  if (isUnixSocket(url)) return { protocol: 'http:', socketPath: url.slice(UNIX.length), path }
  const { protocol, hostname, port, pathname, search } = new URL(url + path)
  return { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port, path: pathname + search }
}
