// pip and npm install into the home directory at every isolation level.
import { createNpmPackage, createWheel, npmPackageFile, wheelFile } from '../../../../support/packages.ts'
import { startBox, testEachLevel, waitForFileText } from './support.ts'

const PIP_FLAGS = '--no-index --disable-pip-version-check'
const NPM_FLAGS = '--offline --no-audit --no-fund --no-update-notifier'

/** Prints `skip` for a program that is not installed. */
const script = `set -e
{
  if pip --version >/dev/null 2>&1; then
    ${createWheel('from_pip')}
    pip install ${PIP_FLAGS} ${wheelFile('from_pip')} >&2
    from_pip
  else
    echo skip
  fi
  if npm --version >/dev/null 2>&1; then
    ${createNpmPackage('from-npm')}
    npm install -g ${NPM_FLAGS} ${npmPackageFile('from-npm')} >&2
    from-npm
  else
    echo skip
  fi
  ls -d .local/bin/*
} >out 2>err || { echo failed; cat err; } >>out
mv out result`

testEachLevel('pip and npm install packages into the home directory', async (t, level) => {
  const { inHome } = await startBox(t, { level, script })
  const [pip, npm, ...rest] = (await waitForFileText(inHome('result'))).trimEnd().split('\n')
  const installed: string[] = []
  for (const [name, line, program] of [
    ['npm', npm, 'from-npm'],
    ['pip', pip, 'from_pip'],
  ]) {
    if (line === 'skip') t.pass(`${name} installs a package`, { skip: `${name} is not installed` })
    else {
      t.equal(line, `${program} works`, rest.join('\n'))
      installed.push(`.local/bin/${program}`)
    }
  }
  t.same(rest, installed)
})
