// A box cannot use the kernel keyrings of the coordinator, with the native part and where only bubblewrap loads the filter.
import { spawnSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { describeIsolation } from '../../../../coordinator/providers/local/describe-isolation.ts'
import type { Level } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { requires } from '../../../support/requires.ts'
import { testEachLevel } from './each-level.ts'
import { createDataDir, isRoot, openHost, startBox, waitForFileText } from './support.ts'

/** The number of add_key; request_key and keyctl follow. */
const ADD_KEY = { x64: 248, arm64: 217 }[process.arch as string]
const skip = ADD_KEY === undefined ? 'the numbers of the system calls are not known' : requires('perl')

/** Prints the result and the errno of add_key, request_key and keyctl, which returns the id of the session keyring. */
const CALL_KEYRINGS = `perl -e '
  ($type, $name, $value) = ("user", "boxwood-test", "x");
  sub report { print "$_[0] ", $! + 0, "\\n"; $! = 0 }
  report(syscall(${ADD_KEY}, $type, $name, $value, 1, -3));
  report(syscall(${Number(ADD_KEY) + 1}, $type, $name, 0, 0));
  report(syscall(${Number(ADD_KEY) + 2}, 0, -3, 0))'`
const NO_SYSTEM_CALL = '-1 38\n-1 38\n-1 38\n'

/** Runs the calls in a box, as its agent would. */
async function callInBox(test: Test, options: Parameters<typeof startBox>[1]): Promise<string> {
  const script = `${CALL_KEYRINGS} >"$HOME/out" 2>&1; mv "$HOME/out" "$HOME/result"`
  const { inHome } = await startBox(test, { ...options, script })
  return await waitForFileText(inHome('result'))
}

/** Skips the test where the confinement is not the expected one. */
async function hasConfinement(test: Test, level: Level, expected: string): Promise<boolean> {
  const host = await openHost(await createDataDir(test), { level })
  await host.close()
  const hasIt = host.choice.confinement === expected
  if (!hasIt) test.pass('the native part is compiled', { skip: 'the native part is not compiled' })
  return hasIt
}

if (skip !== false) t.test('kernel keyrings', { skip }, () => undefined)
else {
  testEachLevel('a box has no access to the keyrings of the coordinator', async (test, level) => {
    if (!(await hasConfinement(test, level, 'native'))) return
    const result = await callInBox(test, { level })
    // A filter would need no_new_privs, which takes sudo from the user.
    if (level !== 'process' || isRoot) {
      test.equal(result, NO_SYSTEM_CALL)
      return
    }
    const outside = spawnSync('/bin/sh', ['-c', CALL_KEYRINGS], { encoding: 'utf8' }).stdout
    test.match(result, /^\d+ 0\n\d+ 0\n\d+ 0\n$/, 'the keyring of the box works')
    test.not(result.split('\n')[2], outside.split('\n')[2], 'the box has another session keyring')
  })

  testEachLevel(
    'bubblewrap loads the filter where the native part is not compiled',
    async (test, level) => {
      const host = await openHost(await createDataDir(test), { level })
      await host.close()
      const choice = { ...host.choice, confinement: 'bubblewrap' as const }
      test.equal(await callInBox(test, { level, choice }), NO_SYSTEM_CALL)
    },
    ['bubblewrap'],
  )
}

t.test('the startup banner says when boxes can use kernel keyrings', (t) => {
  const choice = {
    level: 'namespaces' as const,
    network: 'host' as const,
    unavailable: [],
    networkProblem: null,
  }
  const cgroups = { controllers: [], canFreeze: true }
  const describe = (confinement: 'native' | null) =>
    describeIsolation({ ...choice, confinement }, cgroups, false)
  t.match(describe(null), /^Boxes can use the kernel keyrings of the coordinator: .*npm run build-native/m)
  t.notMatch(describe('native'), /keyrings/)
  t.end()
})
