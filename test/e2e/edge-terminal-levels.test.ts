// A terminal works at every isolation level that this machine supports.
import t from 'tap'
import { connectAttachClient } from '../support/attach-client.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

for (const level of ['bubblewrap', 'namespaces', 'process']) {
  t.test(`isolation level ${level}`, async (t) => {
    const started = await startCoordinatorWithBox(t, { env: { BOXWOOD_LOCAL_ISOLATION: level } }).catch(
      (error: unknown) => error,
    )
    if (started instanceof Error)
      return void t.pass('', { skip: `the level is not available: ${started.message}` })
    const { url, key, box } = started as Awaited<ReturnType<typeof startCoordinatorWithBox>>
    const client = await connectAttachClient(`${url}/v1/box/${box.hostname}/terminal?cols=90&rows=20`, {
      authorization: `Bearer ${key}`,
    })
    t.teardown(() => client.cut())
    await client.waitFor('attached')
    // SIGINT must reach a process that it terminates: the shell ignores a SIGINT that arrives while `id` exits.
    client.sendStdin(`test -t 0 && tty && stty size && id -u && sh -c 'echo rea""dy; exec sleep 100'\n`)
    await waitUntil('the terminal works', () =>
      /\/dev\/pts\/\d+\r\n20 90\r\n\d+\r\nready\r\n/.test(client.stdout()),
    )
    client.sendStdin('\x03')
    client.sendStdin('exit 6\n')
    t.match(await client.waitFor('exit'), { exitCode: 6 })
  })
}
