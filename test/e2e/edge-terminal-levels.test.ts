// A terminal works at every isolation level that this machine supports, and continues when the agent is killed if it has a host.
import t from 'tap'
import { connectAttachClient } from '../support/attach-client.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { availableLevels } from '../support/isolation-levels.ts'
import { skipWithoutTerminalHost } from '../support/native-parts.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

for (const { level, skip } of await availableLevels()) {
  t.test(`isolation level ${level}`, { skip }, async (t) => {
    const env = { BOXWOOD_LOCAL_ISOLATION: level }
    const { url, key, box } = await startCoordinatorWithBox(t, { env })
    const attach = async (query: string) => {
      const path = `/v1/box/${box.hostname}/terminal?session=level&${query}`
      const client = await connectAttachClient(url + path, { authorization: `Bearer ${key}` })
      t.teardown(() => client.cut())
      await client.waitFor('attached')
      return client
    }
    const client = await attach('cols=90&rows=20')
    // SIGINT must reach a process that it terminates: the shell ignores a SIGINT that arrives while `id` exits.
    client.sendStdin(`test -t 0 && tty && stty size && id -u && sh -c 'echo rea""dy; exec sleep 100'\n`)
    await waitUntil('the terminal works', () =>
      /\/dev\/pts\/\d+\r\n20 90\r\n\d+\r\nready\r\n/.test(client.stdout()),
    )
    const killAgent = async () => {
      process.kill(findAgentPid(box.id) ?? Number.NaN, 'SIGKILL')
      await client.closed
      return await waitUntil('the next agent serves the session', () =>
        attach('create=never').catch(() => false as const),
      )
    }
    const next = skipWithoutTerminalHost ? client : await killAgent()
    next.sendStdin('\x03')
    next.sendStdin('exit 6\n')
    t.match(await next.waitFor('exit'), { exitCode: 6 })
  })
}
