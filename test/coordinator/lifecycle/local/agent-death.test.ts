// kill -9 of the agent ends nothing else, and the init starts it again.
import { pidsWithArgument, uniqueSeconds } from './processes.ts'
import { ALL_LEVELS, eachLevel, startBox, until } from './support.ts'

eachLevel(ALL_LEVELS, async (test, level) => {
  const bystander = uniqueSeconds()
  const agent = uniqueSeconds()
  const script = `[ -e "$HOME/begun" ] || { : >"$HOME/begun"; setsid sleep ${bystander} & }
exec sleep ${agent}`
  const { provider, spec } = await startBox(test, { level, script })
  await until(() => pidsWithArgument(agent).length === 1, 'the agent runs')
  await until(() => pidsWithArgument(bystander).length === 1, 'the bystander runs')
  const [before = 0] = pidsWithArgument(agent)
  const bystanders = pidsWithArgument(bystander)
  process.kill(before, 'SIGKILL')
  await until(() => pidsWithArgument(agent).some((pid) => pid !== before), 'the agent runs again')
  test.same(pidsWithArgument(bystander), bystanders, 'the same process lives on')
  test.equal(await provider.inspect(spec.boxId), 'running')
})
