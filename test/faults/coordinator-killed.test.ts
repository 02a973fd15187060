// kill -9 of the coordinator during requests: nothing acknowledged is lost, and the boxes keep running.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { waitUntil } from '../support/wait-until.ts'

t.test('recovers after the coordinator is killed during a create, a command and a delete', async (t) => {
  const coordinator = await startCoordinatorProcess(t)
  const { sendJson, exec, waitForState, start, kill } = coordinator
  const first = await coordinator.waitForFirstBox()
  await exec(first.hostname, 'echo kept > note; (sleep 1000 >/dev/null 2>&1 & echo $! > bystander)')

  await t.test('the next coordinator completes an acknowledged create', async (t) => {
    const created = await sendJson('POST', '/api/v1/boxes', { name: 'created' })
    await kill('SIGKILL')
    t.match(created, { status: 202, box: { observedState: 'requested' } })
    await start()
    const box = await waitForState(created.box.id, 'running')
    t.match(await exec('created', 'echo works'), { stdout: 'works\n' })
    t.equal((await sendJson('GET', '/api/v1/boxes')).boxes.length, 2, 'the box is created only once')
    t.equal(box.hostname, 'created')
  })

  await t.test('a running command fails for its client, and its box keeps running', async (t) => {
    const interrupted = exec(first.hostname, 'touch started; sleep 30').catch((error) => error)
    await waitUntil(
      'the command started',
      async () => (await exec(first.hostname, 'test -e started')).exitCode === 0,
    )
    await kill('SIGKILL')
    t.type(await interrupted, Error)
    await start()
    t.match(await exec(first.hostname, 'cat note; kill -0 $(cat bystander) && echo alive'), {
      stdout: 'kept\nalive\n',
    })
    await waitUntil('the agent killed the command of the disconnected client', async () => {
      // The pattern does not match the command line of grep itself.
      const found = await exec(first.hostname, `cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep 'sleep 3[0]'`)
      return found.exitCode === 1
    })
  })

  await t.test('the next coordinator completes an acknowledged delete', async (t) => {
    const { boxes } = await sendJson('GET', '/api/v1/boxes')
    const { id } = boxes.find(({ hostname }: { hostname: string }) => hostname === 'created')
    const deleted = await sendJson('DELETE', `/api/v1/boxes/${id}`)
    await kill('SIGKILL')
    t.match(deleted, { status: 202, box: { desiredState: 'terminated' }, operation: { kind: 'box_delete' } })
    await start()
    await waitForState(id, 'terminated')
    t.match(await sendJson('GET', `/api/v1/operations/${deleted.operation.id}`), {
      operation: { status: 'completed', error: null },
    })
    t.notOk(existsSync(join(coordinator.dataDir, 'boxes', id)), "the box's files are removed")
  })

  await t.test('the first box is unaffected by the three kills', async (t) => {
    t.match(await exec(first.hostname, 'kill -0 $(cat bystander) && cat note'), { stdout: 'kept\n' })
    t.match(await sendJson('GET', `/api/v1/boxes/${first.id}`), { pausesSurvived: 0 })
  })
})
