// pip and npm install into the home directory, with a file-system view of the box's own and without one.
import { createNpmPackage, createWheel, npmPackageFile, wheelFile } from '../../../support/packages.ts'
import { testEachLevel } from './each-level.ts'
import { startBox, waitForFileText } from './support.ts'

/** `install` prints to stderr only. */
const MANAGERS = [
  {
    name: 'pip',
    program: 'from_pip',
    install: `${createWheel('from_pip')}
      pip install --no-index --disable-pip-version-check ${wheelFile('from_pip')} >&2`,
  },
  {
    name: 'npm',
    program: 'from-npm',
    install: `${createNpmPackage('from-npm')}
      npm install -g --offline --no-audit --no-fund --no-update-notifier ${npmPackageFile('from-npm')} >&2`,
  },
]

/** Runs the program also in a login shell, because /etc/profile may replace PATH. */
const testManager = ({ name, program, install }: (typeof MANAGERS)[number]) => `
if ${name} --version >/dev/null 2>&1; then
  ${install}
  command -v ${program}
  ${program}
  sh -l -c ${program}
else
  echo skip
fi >${name}.out 2>${name}.err || cat ${name}.err >>${name}.out
mv ${name}.out ${name}.result`

testEachLevel(
  'pip and npm install packages into the home directory',
  async (t, level) => {
    const script = MANAGERS.map(testManager).join('\n')
    const { inHome, paths } = await startBox(t, { level, script })
    const home = level === 'process' ? paths.home : '/home/box'
    for (const { name, program } of MANAGERS) {
      const result = await waitForFileText(inHome(`${name}.result`))
      if (result === 'skip\n') t.pass(name, { skip: `${name} is not installed` })
      else t.equal(result, `${home}/.local/bin/${program}\n${program} works\n${program} works\n`, name)
    }
  },
  // The files and the environment of a box are the same at the levels namespaces and bubblewrap.
  ['bubblewrap', 'process'],
)
