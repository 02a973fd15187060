// A build that does not work: machines and local boxes return to their previous build by themselves, and do not get the
// build again until an owner resumes the rollout.

import t from 'tap'
import { VERSION } from '../../shared/version.ts'
import { copyProject, joinMachine, startUpgradableCoordinator } from '../support/joined-machine.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { waitUntil } from '../support/wait-until.ts'

const MAIN = 'main().catch(fail)'
const coordinator = await startUpgradableCoordinator(t, PROJECT_DIR)
const local = await coordinator.waitForFirstBox()
const machine = await joinMachine(t, coordinator, 4)
const { boxId, readLink, exec, readLog } = machine
const goodBuild = readLink('current')
const countDownloads = () => readLog().split('"downloading a build of the agent"').length - 1
const waitForFailure = (id: string) =>
  coordinator.waitForAgent(id, 'the build has failed', ({ state }) => state === 'failed')

const { processId } = await exec('while [ ! -e go ]; do sleep 0.1; done; echo went', { detached: true })

t.test('a build whose agent exits at once', async (t) => {
  await coordinator.kill('SIGTERM')
  await coordinator.startFrom(copyProject(t, { 'agent/main.ts': [[MAIN, 'process.exit(7)']] }))
  const failed = await waitForFailure(boxId)
  t.match(failed, { version: `${VERSION}+${goodBuild}`, detail: /returned to its previous build/ })
  t.not(failed.targetBuild, goodBuild)
  t.equal(readLink('current'), goodBuild)
  t.match(
    readLog(),
    new RegExp(`build ${failed.targetBuild} did not connect; returning to build ${goodBuild}`),
  )
  t.match(await exec('echo works'), { stdout: 'works\n' })

  const failedLocal = await waitForFailure(local.id)
  t.not(failedLocal.targetBuild, failedLocal.version?.split('+')[1])
  t.match(await coordinator.exec(local.hostname, 'echo works'), { stdout: 'works\n' })

  await coordinator.kill('SIGKILL')
  await coordinator.startFrom()
  await waitForFailure(boxId)
  t.equal(countDownloads(), 1, 'the next coordinator does not offer the build again')

  await coordinator.patchRollout({ paused: false })
  await waitUntil(
    'the build is tried again',
    () => readLog().split(' did not connect; returning').length === 3,
  )
  await waitForFailure(boxId)
  t.match(await exec('echo works'), { stdout: 'works\n' })
})

t.test('a build whose agent runs and never connects', async (t) => {
  await coordinator.kill('SIGTERM')
  await coordinator.startFrom(
    copyProject(t, { 'agent/main.ts': [[MAIN, 'setInterval(() => undefined, 1000)']] }),
  )
  const failed = await waitForFailure(boxId)
  t.match(failed, { version: `${VERSION}+${goodBuild}` })
  t.equal(readLink('current'), goodBuild)
  t.match(await exec('echo works'), { stdout: 'works\n' })
})

t.test('a good build replaces the failed ones, and the command of the beginning still runs', async (t) => {
  await coordinator.kill('SIGTERM')
  await coordinator.startFrom(
    copyProject(t, { 'shared/version.ts': [[`VERSION = '${VERSION}'`, "VERSION = '1.0.1'"]] }),
  )
  const agent = await coordinator.waitForAgent(
    boxId,
    'the agent is upgraded',
    ({ state }) => state === 'current',
  )
  t.equal(agent.version, `1.0.1+${agent.targetBuild}`)
  t.same(
    machine.listVersions().sort(),
    [goodBuild, agent.targetBuild].sort(),
    'the failed builds are removed',
  )
  await coordinator.waitForAgent(local.id, 'the local box is upgraded', ({ state }) => state === 'current')
  await exec('touch go')
  const status = await waitUntil('the command exits', async () => {
    const { running, exitCode } = await coordinator.sendJson('GET', `${machine.route}/exec/${processId}`)
    return running === false && { exitCode }
  })
  t.same(status, { exitCode: 0 })
})
