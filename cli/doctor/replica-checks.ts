// Checks of the replicas that share a database: whether they run, and their versions.
import type { ReplicaStatus } from '../../shared/coordinator-process.ts'
import { formatCount } from '../../shared/format-count.ts'
import { boxCommand } from '../command-name.ts'
import { formatDuration } from '../output/format.ts'
import { type Check, fail, ok, warn } from './check.ts'

const describe = ({ name, version, host, tunnels, leaseAgeMs }: ReplicaStatus): string =>
  `${name}: version ${version}, host ${host ?? 'unknown'}, ${
    tunnels === null ? 'starting or stopping' : formatCount(tunnels, 'agent')
  }, lease extended ${formatDuration(leaseAgeMs)} ago`

/** @param replicas see listReplicas() */
export function checkReplicas(replicas: readonly ReplicaStatus[] | { problem: string } | null): Check[] {
  if (replicas === null) return []
  if ('problem' in replicas)
    return [fail('replicas', 'they cannot be read from the database', replicas.problem || 'See the log.')]
  if (replicas.length < 2) return []
  const hosts = new Set(replicas.filter(({ isAlive }) => isAlive).map(({ host }) => host))
  const versions = new Set(replicas.filter(({ isAlive }) => isAlive).map(({ version }) => version))
  return replicas
    .filter(({ isAlive, host }) => isAlive || !hosts.has(host))
    .map((replica) => {
      if (!replica.isAlive)
        return warn(
          'replica',
          describe(replica),
          'It has stopped without ending its lease, and its local boxes are not available. Start it again.',
        )
      return versions.size === 1
        ? ok('replica', describe(replica))
        : warn(
            'replica',
            describe(replica),
            `The replicas have different versions. Upgrade the older ones: \`${boxCommand()} docs replicas\`.`,
          )
    })
}
