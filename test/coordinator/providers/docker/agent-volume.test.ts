// An upgrade of the agent removes the builds that no box uses from the volume of the boxes.
import t from 'tap'
import { readAgentFiles } from '../../../../coordinator/providers/container/agent-files.ts'
import { AgentVolume } from '../../../../coordinator/providers/docker/agent-volume.ts'
import { EngineHttp } from '../../../../coordinator/providers/engine-http/client.ts'
import { findDockerProblem, startDocker } from '../../../support/engines/docker.ts'
import { PROJECT_DIR } from '../../../support/project.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const DEPLOYMENT = '0123456789abcdef'
/** Two old builds of one Node, the build that a box still runs with its Node, and the last build of another Node. */
const [UNUSED, OTHER, RUNNING, LAST] = ['1', '2', '3', '4'].map((digit) => digit.repeat(16))
const [UNUSED_NODE, RUNNING_NODE, LAST_NODE] = ['a', 'b', 'c'].map((digit) => `node-${digit.repeat(12)}`)

const OLD_VOLUME = `
add() {
  mkdir -p /agent/$1 /agent/$2
  echo content >/agent/$1/agent.mjs
  printf %s $2 >/agent/complete-$1
  touch /agent/complete-$2 /agent/l$(echo $2 | cut -c 6-11)
}
add ${UNUSED} ${UNUSED_NODE}
add ${OTHER} ${UNUSED_NODE}
add ${RUNNING} ${RUNNING_NODE}
add ${LAST} ${LAST_NODE}
ln -s ${LAST} /agent/current
ln -s ${LAST_NODE} /agent/node
printf '%s %s' ${LAST} ${LAST_NODE} >/agent/installed`

t.test('old builds of the agent', { skip: findDockerProblem() ?? false }, async (t) => {
  const docker = await startDocker()
  if ('skip' in docker) return void t.comment(docker.skip)
  t.teardown(() => docker.close())
  const http = new EngineHttp('Docker', { kind: 'unix', path: docker.socket })
  t.teardown(() => http.close())
  const warnings: unknown[] = []
  const log = { debug() {}, info() {}, warn: (...args: unknown[]) => warnings.push(args) }
  const files = await readAgentFiles({ projectRoot: PROJECT_DIR, dataDir: createTempDir(t, 'agent-volume') })
  const openVolume = () => new AgentVolume({ kind: 'docker', http, deploymentId: DEPLOYMENT, log }, files)
  const volume = openVolume()
  const run = (...args: string[]) => docker.command(['run', ...args])
  const list = () =>
    run('--rm', `--volume=${volume.name}:/agent`, 'busybox', 'ls', '/agent').trim().split('\n')

  run('--rm', `--volume=${volume.name}:/agent`, 'busybox', 'sh', '-c', OLD_VOLUME)
  const labels = [`boxwood.coordinator=${DEPLOYMENT}`, 'boxwood.role=machine'].map(
    (label) => `--label=${label}`,
  )
  const script = `mkdir -p /var/lib/boxwood; echo "${RUNNING} 12" >/var/lib/boxwood/connected-build; exec sleep 1000`
  run('--detach', '--name=box', ...labels, 'busybox', 'sh', '-c', script)
  await waitUntil('the box runs', () => docker.command(['exec', 'box', 'ls', '/var/lib']).includes('boxwood'))

  await volume.ensure()
  t.same(warnings, [])
  const current = [files.buildId, files.nodeDir]
  const kept = [RUNNING, RUNNING_NODE, LAST, LAST_NODE, ...current]
  const expected = [
    ...kept.flatMap((name) => [name, `complete-${name}`]),
    ...[RUNNING_NODE, LAST_NODE, files.nodeDir].map((name) => `l${name?.slice(5, 11)}`),
    ...['current', 'installed', 'node', 'previous'],
  ]
  t.same(list().sort(), expected.sort())
  t.equal(
    run('--rm', `--volume=${volume.name}:/agent`, 'busybox', 'readlink', '/agent/previous').trim(),
    LAST,
    'the build to which a box returns when the current one does not connect',
  )
  t.equal(docker.command(['ps', '--all', '--quiet', '--filter=label=boxwood.role=helper']).trim(), '')

  await openVolume().ensure()
  t.same(list().sort(), expected, 'a start without another build changes nothing')
})
