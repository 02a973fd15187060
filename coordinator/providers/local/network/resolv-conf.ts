// The /etc/resolv.conf of a box that has its own network.
import { existsSync, readFileSync } from 'node:fs'

/** slirp4netns forwards DNS requests for this address to the name server of the host. */
const NAME_SERVER = '10.0.2.3'

/** Has the search domains and options of the host. */
export function createResolvConf(): string {
  const hostLines = existsSync('/etc/resolv.conf') ? readFileSync('/etc/resolv.conf', 'utf8').split('\n') : []
  const kept = hostLines.filter((line) => /^(search|domain|options)\s/.test(line))
  return [...kept, `nameserver ${NAME_SERVER}`, ''].join('\n')
}
