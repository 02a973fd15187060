// A stop ends every process of the box, however it tried to get away, and may be asked for twice.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pidsWithArgument, uniqueSeconds } from './processes.ts'
import { ALL_LEVELS, eachLevel, startBox, until } from './support.ts'

eachLevel(ALL_LEVELS, async (test, level) => {
  const escapee = uniqueSeconds()
  const deaf = uniqueSeconds()
  const script = `(setsid sh -c 'sleep ${escapee} & exit' &)
(trap '' TERM; sleep ${deaf}) &
trap 'echo told >>"$HOME/told"; exit' TERM
: >"$HOME/ready"
while :; do sleep 0.05; done`
  const { provider, spec, inHome } = await startBox(test, { level, script })
  await until(() => existsSync(inHome('ready')), 'the agent runs')
  await until(() => pidsWithArgument(escapee).length === 1, 'the escapee runs')
  await provider.stop(spec.boxId)
  test.same(pidsWithArgument(escapee), [], 'a process that left its session is gone')
  test.same(pidsWithArgument(deaf), [], 'a process that ignores TERM is gone')
  test.equal(
    await readFile(inHome('told'), 'utf8'),
    'told\n',
    'the agent was told once, and could end by itself',
  )
  test.equal(await provider.inspect(spec.boxId), 'stopped')
  await provider.stop(spec.boxId)

  await provider.start(spec)
  const again = await provider.start(spec)
  test.equal(again.isolation?.level, level)
  test.equal(await provider.inspect(spec.boxId), 'running')
  await until(() => pidsWithArgument(deaf).length > 0, 'it runs again')
  test.equal(pidsWithArgument(deaf).length, 1, 'and once only')
})
