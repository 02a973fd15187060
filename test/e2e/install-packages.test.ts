// npm, pip, pipx and cargo install packages into the home of a box without root access.
import t from 'tap'
import { connectAttachClient } from '../support/attach-client.ts'
import { createCrate, createNpmPackage, createWheel, npmPackageFile, wheelFile } from '../support/packages.ts'
import { type OptionalProgram, requires } from '../support/requires.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

const NPM_FLAGS = '--offline --no-audit --no-fund --no-update-notifier'
const PIP_FLAGS = '--quiet --no-index --disable-pip-version-check'

type Case = {
  name: string
  programs: OptionalProgram[]
  /** Another command that must work in the box. */
  needs?: string
  /** Creates a package in a new directory. */
  create: string
  install: string
  /** Prints `EXPECTED works`. */
  run: string
  expected: string
}

const CASES: Case[] = [
  {
    name: 'npm install -g',
    programs: [],
    needs: 'npm --version',
    create: createNpmPackage('from-npm'),
    install: `npm install -g ${NPM_FLAGS} ${npmPackageFile('from-npm')}`,
    run: 'from-npm',
    expected: 'from-npm',
  },
  {
    name: 'pip install',
    programs: ['pip'],
    create: createWheel('from_pip'),
    install: `pip install ${PIP_FLAGS} ${wheelFile('from_pip')}`,
    run: 'from_pip && python3 -c "import from_pip"',
    expected: 'from_pip',
  },
  {
    name: 'pip install --user',
    programs: ['pip'],
    create: createWheel('from_user'),
    install: `pip install --user ${PIP_FLAGS} ${wheelFile('from_user')}`,
    run: 'from_user',
    expected: 'from_user',
  },
  {
    name: 'pip install in a virtual environment',
    programs: [],
    needs: 'python3 -c "import ensurepip"',
    create: createWheel('from_venv'),
    install: `python3 -m venv ~/env && ~/env/bin/pip install ${PIP_FLAGS} ${wheelFile('from_venv')}`,
    run: '! command -v from_venv && ~/env/bin/from_venv',
    expected: 'from_venv',
  },
  {
    name: 'pipx install',
    programs: ['pipx'],
    needs: 'python3 -c "import ensurepip"',
    create: createWheel('from_pipx'),
    install: `pipx install --pip-args=--no-index ${wheelFile('from_pipx')}`,
    run: 'from_pipx',
    expected: 'from_pipx',
  },
  {
    name: 'cargo install',
    programs: ['cargo', 'cc'],
    create: createCrate('from-cargo'),
    install: `cargo install --quiet --offline --path ./from-cargo-crate`,
    run: 'from-cargo',
    expected: 'from-cargo',
  },
]

const coordinator = await startCoordinatorWithBox(t)
const { exec, boxRequest, url, key, box } = coordinator

/** Why the case is skipped: a program that is not installed, or that the box cannot run. */
async function findProblem({ programs, needs }: Case): Promise<string | false> {
  const missing = requires(...programs)
  if (missing !== false) return missing
  for (const command of [...programs.map((program) => `${program} --version`), needs ?? 'true'])
    if ((await exec(command)).exitCode !== 0) return `this machine cannot run: ${command}`
  return false
}

const installed: Case[] = []
// At the same time, since most of the time is spent in one process of each.
const results = await Promise.all(
  CASES.map(async (testCase) => {
    const problem = await findProblem(testCase)
    if (problem !== false) return { problem }
    const command = `set -e; dir=$(mktemp -d); cd "$dir"\n${testCase.create}\n${testCase.install}`
    return { problem, result: await exec(command, { timeoutSeconds: 120 }) }
  }),
)
for (const [index, testCase] of CASES.entries()) {
  const { problem, result } = results[index] as (typeof results)[number]
  t.test(`${testCase.name} works without root`, async (t) => {
    if (result === undefined) return void t.pass('', { skip: String(problem) })
    t.equal(result.exitCode, 0, `${result.stdout}${result.stderr}`)
    t.match(await exec(testCase.run), { exitCode: 0, stdout: `${testCase.expected} works\n` })
    installed.push(testCase)
  })
}

t.test('login shells, terminals and detached commands find the installed programs', async (t) => {
  const run = ['true', ...installed.map((testCase) => testCase.run)].join(' && ')
  const expected = installed.map((testCase) => `${testCase.expected} works\n`).join('')
  for (const shell of ['sh', 'bash']) {
    if ((await exec(`command -v ${shell}`)).exitCode !== 0) {
      t.pass(`${shell} -l`, { skip: `${shell} is not installed` })
      continue
    }
    t.match(await exec(`${shell} -l <<'EOF'\n${run}\nEOF`), { exitCode: 0, stdout: expected }, `${shell} -l`)
  }

  const detached = await boxRequest('POST', '/exec', {
    command: `{ ${run}; } >out; mv out detached-out`,
    detached: true,
  })
  t.equal(detached.status, 200)
  await waitUntil('the detached command has exited', async () => {
    return (await exec('test -e detached-out')).exitCode === 0
  })
  t.match(await exec('cat detached-out'), { stdout: expected })

  const terminal = await connectAttachClient(`${url}/v1/box/${box.hostname}/terminal?cols=200&rows=50`, {
    authorization: `Bearer ${key}`,
  })
  t.teardown(() => terminal.cut())
  await terminal.waitFor('attached')
  terminal.sendStdin(`{ ${run}; } >out; mv out terminal-out; exit\n`)
  await terminal.waitFor('exit')
  t.match(await exec('cat terminal-out'), { stdout: expected })
})

t.test('the variables of a command override the defaults', async (t) => {
  const prefix = 'npm prefix -g'
  if ((await exec('npm --version')).exitCode === 0) {
    t.match(await exec(prefix), { stdout: /\/\.local\n$/ })
    t.match(await exec(prefix, { env: { NPM_CONFIG_PREFIX: '/tmp/mine' } }), { stdout: '/tmp/mine\n' })
    t.match(await exec(`echo prefix=/tmp/user >~/.npmrc; ${prefix}; rm ~/.npmrc`), { stdout: '/tmp/user\n' })
  } else t.pass('npm', { skip: 'npm is not installed' })
  const command = 'echo $PIP_BREAK_SYSTEM_PACKAGES $PATH'
  t.match(await exec(command, { env: { PIP_BREAK_SYSTEM_PACKAGES: '0', PATH: '/usr/bin:/bin' } }), {
    stdout: '0 /usr/bin:/bin\n',
  })
})

t.test('a changed .profile stays as it is when the box is suspended and woken', async (t) => {
  await exec('echo "export MINE=1" >~/.profile')
  await coordinator.api('POST', `/boxes/${box.id}/suspend`)
  await coordinator.waitForState(box.id, 'suspended')
  t.match(await exec("sh -lc 'echo $MINE'"), { stdout: '1\n' })
})
