// A box with its own network: commands, files and streams work, also after the coordinator was killed and restarted.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { findOwnNetworkProblem } from '../support/isolation-levels.ts'

const skip = findOwnNetworkProblem()

t.test('the agent reaches the coordinator, and the box does not reach its port', { skip }, async (t) => {
  const coordinator = await startCoordinatorProcess(t, { BOXWOOD_LOCAL_NETWORK: 'own' })
  const { exec, send, sendJson, start, kill } = coordinator
  const { hostname, isolation } = await coordinator.waitForFirstBox()
  t.match(isolation, { network: 'own' })
  const connect = `fetch('${coordinator.url}/healthz').then(() => console.log('connected'), () => console.log('failed'))`
  t.match(await exec(hostname, `/run/boxwood/bin/node -e "${connect}"`), { stdout: 'failed\n' })

  const upload = await send('PUT', `/v1/box/${hostname}/upload?path=file`, randomBytes(1_000_000))
  t.equal(upload.statusCode, 200)
  upload.resume()
  t.match(await exec(hostname, 'wc -c <file'), { stdout: '1000000\n' })
  const readStream = async (processId: string) => {
    const response = await send('GET', `/v1/box/${hostname}/exec/${processId}/stream`)
    return Buffer.concat(await response.toArray()).toString()
  }
  const { processId } = await exec(hostname, 'seq 3', { detached: true })
  t.match(await readStream(processId), /event: exit/)

  await exec(hostname, 'sleep 600 >/dev/null 2>&1 & echo $! >pid')
  await kill('SIGKILL')
  await start()
  t.match(await exec(hostname, 'kill -0 $(cat pid) && echo alive'), { stdout: 'alive\n' })
  t.match(await readStream(processId), /event: exit/)
  t.match((await sendJson('GET', '/api/v1/boxes')).boxes[0].isolation, { network: 'own' })
})
