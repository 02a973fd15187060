// kill -9 of the coordinator at bad moments: nothing that was answered is lost, and no box notices.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCoordinatorProcess, waitUntil } from '../support/coordinator-process.ts'

t.test('in the middle of a create, a delete and a command', async (t) => {
  const coordinator = await startCoordinatorProcess(t)
  const { sendJson, exec, waitForState, start, kill } = coordinator
  const first = await coordinator.waitForFirstBox()
  await exec(first.hostname, 'echo kept > note; (sleep 1000 >/dev/null 2>&1 & echo $! > bystander)')

  await t.test('a create that was answered is finished by the next coordinator', async (t) => {
    const created = await sendJson('POST', '/api/v1/boxes', { name: 'created' })
    await kill('SIGKILL')
    t.match(created, { status: 202, box: { observedState: 'requested' } })
    await start()
    const box = await waitForState(created.box.id, 'running')
    t.match(await exec('created', 'echo works'), { stdout: 'works\n' })
    t.equal((await sendJson('GET', '/api/v1/boxes')).boxes.length, 2, 'and made once')
    t.equal(box.hostname, 'created')
  })

  await t.test('a command under way ends with an error, its box runs on', async (t) => {
    const lost = exec(first.hostname, 'touch began; sleep 30').catch((error) => error)
    await waitUntil('it began', async () => (await exec(first.hostname, 'test -e began')).exitCode === 0)
    await kill('SIGKILL')
    t.type(await lost, Error)
    await start()
    t.match(await exec(first.hostname, 'cat note; kill -0 $(cat bystander) && echo alive'), {
      stdout: 'kept\nalive\n',
    })
    await waitUntil('the command whose caller is gone was ended', async () => {
      const left = await exec(first.hostname, `cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep 'sleep 3[0]'`)
      return left.exitCode === 1
    })
  })

  await t.test('a delete that was answered is finished by the next coordinator', async (t) => {
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
    t.notOk(existsSync(join(coordinator.dataDir, 'boxes', id)), 'its files are gone')
  })

  await t.test('killed again and again, the first box is as it was', async (t) => {
    for (let round = 0; round < 3; round++) {
      await kill('SIGKILL')
      await start()
    }
    t.match(await exec(first.hostname, 'kill -0 $(cat bystander) && cat note'), { stdout: 'kept\n' })
    t.match(await sendJson('GET', `/api/v1/boxes/${first.id}`), { pausesSurvived: 0 })
  })
})
