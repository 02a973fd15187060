// Spec §4.14, the synchronous part: commands over real HTTP on a real box.
import t from 'tap'
import { edgeBox, UNLIMITED } from './edge-box.ts'

t.test('what a command did', async (t) => {
  const { url, key, ask, exec, box, edge } = await edgeBox(t)

  t.match(await exec('echo out; echo err >&2; exit 3'), {
    ok: true,
    type: 'exec.result',
    exitCode: 3,
    signal: null,
    stdout: 'out\n',
    stderr: 'err\n',
    stdoutTruncated: false,
    stderrTruncated: false,
    timedOut: false,
    cwd: '~',
    startedAt: /^\d{4}-\d\d-\d\dT.*Z$/,
    finishedAt: /Z$/,
  })
  t.match(await exec('kill -9 $$'), { exitCode: null, signal: 'KILL', timedOut: false })
  t.match(await exec('exit 124'), { exitCode: 124, timedOut: false })
  t.match(await exec('sleep 60', { timeoutSeconds: 1 }), { timedOut: true })
  t.match(await exec('echo $A$B', { env: { A: '1', B: 'x y' } }), { stdout: '1x y\n' })
  t.match(await exec('pwd', { cwd: '/tmp' }), { stdout: '/tmp\n', cwd: '/tmp' })
  t.match(await exec('hostname 2>/dev/null || cat /etc/hostname'), { exitCode: 0 })
  t.match((await edge(box.id, 'POST', '/exec', { command: 'echo by id' })).json, { stdout: 'by id\n' })

  await t.test('binary output is text with U+FFFD, never a broken answer', async (t) => {
    t.match(await exec("printf 'a\\377b\\000c'"), { stdout: 'a\ufffdb\0c' })
  })

  await t.test('a command that prints 1 GiB answers with its last MiB', async (t) => {
    const result = await exec('head -c 1073741824 /dev/zero; echo end', { timeoutSeconds: 120 })
    t.match(result, { exitCode: 0, stdoutTruncated: true, stderrTruncated: false })
    const stdout = String(result.stdout)
    t.equal(stdout.length, 1024 * 1024)
    t.ok(stdout.endsWith('\0end\n'))
  })

  await t.test('a grandchild that keeps the output open does not hold up the answer', async (t) => {
    t.match(await exec('sleep 6 & echo here'), { stdout: 'here\n', exitCode: 0 })
  })

  await t.test('each kind of bad request has its code', async (t) => {
    const refused = async (body: unknown, status: number, code: string) => {
      const answer = await ask('POST', '/exec', body, { headers: { 'content-type': 'application/json' } })
      t.match(answer, { status, json: { ok: false, error: { code } } }, JSON.stringify(body).slice(0, 60))
    }
    await refused('{', 400, 'invalid_request')
    await refused('[]', 400, 'invalid_request')
    await refused({}, 400, 'invalid_request')
    await refused({ command: '  ' }, 400, 'invalid_request')
    await refused({ command: 'a\0b' }, 400, 'invalid_request')
    await refused({ command: 'true', cwd: 'a\nb' }, 400, 'invalid_request')
    await refused({ command: 'true', env: { '1A': 'x' } }, 400, 'invalid_request')
    const entries = Array.from({ length: 33 }, (_, i) => [`V${i}`, 'x'])
    await refused({ command: 'true', env: Object.fromEntries(entries) }, 400, 'invalid_request')
    for (const timeoutSeconds of [0, 601, 'x'])
      await refused({ command: 'true', timeoutSeconds }, 400, 'invalid_timeout')
    await refused({ command: 'true', cwd: '/no/such/folder' }, 404, 'not_found')
    t.match(await edge('no-such-box', 'POST', '/exec', { command: 'true' }), {
      status: 404,
      json: { ok: false, error: { code: 'not_found' } },
    })
    t.match(await ask('GET', '/nothing'), { status: 404, json: { error: { code: 'not_found' } } })
    const wrong = await ask('PATCH', '/exec')
    t.match(wrong, { status: 405, json: { error: { code: 'method_not_allowed' } } })
    t.match(wrong.headers.get('allow'), /POST/)
    t.match(await ask('POST', '/exec', { command: 'true' }, { key: 'dcp_wrong' }), {
      status: 401,
      json: { ok: false, error: { code: 'unauthorized' } },
    })
  })

  await t.test('a client that leaves takes its command with it', async (t) => {
    const gone = new AbortController()
    const request = fetch(`${url}/v1/box/${box.hostname}/exec`, {
      method: 'POST',
      signal: gone.signal,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ command: 'touch started; sleep 62' }),
    }).catch(() => 'aborted')
    await until(async () => (await exec('test -e started')).exitCode === 0)
    gone.abort()
    t.equal(await request, 'aborted')
    const running = `cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep 'sleep 6[2]'`
    await until(async () => (await exec(running)).exitCode === 1)
  })
})

async function until(condition: () => Promise<boolean>) {
  const deadline = performance.now() + 15_000
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('not within 15 s')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

t.test('a suspended box: exec wakes it, every other route says box_not_running', async (t) => {
  const { api, ask, exec, box, waitForState } = await edgeBox(t)
  await exec('echo kept > note')
  await api('POST', `/boxes/${box.id}/suspend`)
  await waitForState(box.id, 'suspended')
  for (const [method, path] of [
    ['GET', '/files?path=note'],
    ['GET', '/download?path=note'],
    ['PUT', '/upload?path=note'],
  ] as const)
    t.match(await ask(method, path), {
      status: 409,
      json: { ok: false, error: { code: 'box_not_running', state: 'suspended' } },
    })
  t.match(await exec('cat note'), { stdout: 'kept\n' })
  t.match((await api('GET', `/boxes/${box.id}`)).json, {
    box: { observedState: 'running', desiredState: 'running' },
    pausesSurvived: 1,
  })
})

t.test('the limits of the spec hold at the edge', async (t) => {
  const { ask, exec } = await edgeBox(t, { env: { ...UNLIMITED, BOXWOOD_EDGE_CONCURRENCY: '2' } })
  const running = [exec('sleep 3'), exec('sleep 3')]
  await until(async () => (await ask('POST', '/exec', { command: 'true' })).status === 429)
  const refused = await ask('POST', '/exec', { command: 'true' })
  t.match(refused, { status: 429, json: { ok: false, error: { code: 'rate_limited' } } })
  t.match(refused.headers.get('retry-after'), /^[1-9]\d*$/)
  await Promise.all(running)
  t.match(await exec('echo free again'), { stdout: 'free again\n' })
})
