// A bridge to which network namespaces are connected, and rules that drop the packets of one of them.
import { execFileSync } from 'node:child_process'
import { requires } from '../requires.ts'

/** Of the bridge: Caddy and the test. It comes first, so that it is the source of what they send. */
export const PROXY_ADDRESS = '10.0.0.3'
export const POSTGRES_ADDRESS = '10.0.0.1'
/** The port is that in install/proxies/Caddyfile-replicas. */
export const REPLICA_ADDRESSES = ['10.0.0.4', '10.0.0.5', '10.0.0.6'] as const
export const REPLICA_PORT = 7070

/** Why this machine cannot have the namespaces and rules; false: it can. */
export const findNetworkProblem = (): string | false => requires('ip', 'nft', 'nsenter')

const BRIDGE = 'replicas'
const TABLE = 'cut'

const run = (program: string, args: readonly string[], input = ''): string =>
  execFileSync(program, args, {
    input,
    encoding: 'utf8',
    stdio: 'pipe',
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  })

const ip = (command: string): string => run('ip', command.split(' '))

export type NetworkNamespace = {
  address: string
  /** A command that runs its arguments in the namespace, as the same process. */
  prefix: readonly string[]
  /** Drops all packets to and from the address until the returned function is called. */
  drop(address: string): () => void
}

/** Creates the bridge with its addresses. Call it once, on an own machine (own-machine.ts). */
export function createBridge(): void {
  ip(`link add ${BRIDGE} type bridge`)
  for (const address of [PROXY_ADDRESS, POSTGRES_ADDRESS]) ip(`address add ${address}/24 dev ${BRIDGE}`)
  ip(`link set ${BRIDGE} up`)
}

export function createNetworkNamespace(name: string, address: string): NetworkNamespace {
  ip(`netns add ${name}`)
  ip(`link add ${name} type veth peer name eth0 netns ${name}`)
  ip(`link set ${name} master ${BRIDGE} up`)
  ip(`-n ${name} address add ${address}/24 dev eth0`)
  ip(`-n ${name} link set lo up`)
  ip(`-n ${name} link set eth0 up`)
  const prefix = ['nsenter', `--net=/run/netns/${name}`, '--']
  const nft = (text: string) => run('nsenter', [...prefix.slice(1), 'nft', '-f', '-'], text)
  return {
    address,
    prefix,
    drop(other) {
      nft(`table inet ${TABLE} {
        chain input { type filter hook input priority filter; ip saddr ${other} drop; }
        chain output { type filter hook output priority filter; ip daddr ${other} drop; }
      }`)
      return () => void nft(`delete table inet ${TABLE}`)
    },
  }
}
