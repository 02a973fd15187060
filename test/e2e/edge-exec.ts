// Spec §4.14: synchronous commands over HTTP on a real box.
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

t.test('runs synchronous commands', async (t) => {
  const { url, key, boxRequest, exec, box, edge } = sharedCoordinator

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

  await t.test('replaces invalid UTF-8 in the output with U+FFFD', async (t) => {
    t.match(await exec("printf 'a\\377b\\000c'"), { stdout: 'a\ufffdb\0c' })
  })

  await t.test('responds with the last MiB of 1 GiB of output', async (t) => {
    const result = await exec('head -c 1073741824 /dev/zero; echo end', { timeoutSeconds: 120 })
    t.match(result, { exitCode: 0, stdoutTruncated: true, stderrTruncated: false })
    const stdout = String(result.stdout)
    t.equal(stdout.length, 1024 * 1024)
    t.ok(stdout.endsWith('\0end\n'))
  })

  await t.test('does not wait for a grandchild that keeps the output open', async (t) => {
    t.match(await exec('sleep 6 & echo here'), { stdout: 'here\n', exitCode: 0 })
  })

  await t.test('rejects each kind of invalid request with its code', async (t) => {
    const expectError = async (body: unknown, status: number, code: string) => {
      const headers = { 'content-type': 'application/json' }
      const response = await boxRequest('POST', '/exec', body, { headers })
      t.match(response, { status, json: { ok: false, error: { code } } }, JSON.stringify(body).slice(0, 60))
    }
    await expectError('{', 400, 'invalid_request')
    await expectError('[]', 400, 'invalid_request')
    await expectError({}, 400, 'invalid_request')
    await expectError({ command: '  ' }, 400, 'invalid_request')
    await expectError({ command: 'a\0b' }, 400, 'invalid_request')
    await expectError({ command: 'true', cwd: 'a\nb' }, 400, 'invalid_request')
    await expectError({ command: 'true', env: { '1A': 'x' } }, 400, 'invalid_request')
    const entries = Array.from({ length: 33 }, (_, i) => [`V${i}`, 'x'])
    await expectError({ command: 'true', env: Object.fromEntries(entries) }, 400, 'invalid_request')
    for (const timeoutSeconds of [0, 601, 'x'])
      await expectError({ command: 'true', timeoutSeconds }, 400, 'invalid_timeout')
    await expectError({ command: 'true', cwd: '/no/such/dir' }, 404, 'not_found')
    t.match(await edge('no-such-box', 'POST', '/exec', { command: 'true' }), {
      status: 404,
      json: { ok: false, error: { code: 'not_found' } },
    })
    t.match(await boxRequest('GET', '/nothing'), { status: 404, json: { error: { code: 'not_found' } } })
    const wrongMethod = await boxRequest('PATCH', '/exec')
    t.match(wrongMethod, { status: 405, json: { error: { code: 'method_not_allowed' } } })
    t.match(wrongMethod.headers.get('allow'), /POST/)
    t.match(await boxRequest('POST', '/exec', { command: 'true' }, { key: 'dcp_wrong' }), {
      status: 401,
      json: { ok: false, error: { code: 'unauthorized' } },
    })
  })

  await t.test('kills the command of a client that disconnects', async (t) => {
    const client = new AbortController()
    const request = fetch(`${url}/v1/box/${box.hostname}/exec`, {
      method: 'POST',
      signal: client.signal,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ command: 'touch started; sleep 62' }),
    }).catch(() => 'aborted')
    await waitUntil('the command started', async () => (await exec('test -e started')).exitCode === 0)
    client.abort()
    t.equal(await request, 'aborted')
    // The pattern does not match the command line of grep itself.
    const findCommand = `cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep 'sleep 6[2]'`
    await waitUntil('the command is killed', async () => (await exec(findCommand)).exitCode === 1)
  })
})

t.test('exec wakes a suspended box; every other route responds box_not_running', async (t) => {
  const { api, boxRequest, exec, box, waitForState } = sharedCoordinator
  await exec('echo kept > note')
  await api('POST', `/boxes/${box.id}/suspend`)
  await waitForState(box.id, 'suspended')
  for (const [method, path] of [
    ['GET', '/files?path=note'],
    ['GET', '/download?path=note'],
    ['PUT', '/upload?path=note'],
    ['GET', '/processes'],
  ] as const)
    t.match(await boxRequest(method, path), {
      status: 409,
      json: { ok: false, error: { code: 'box_not_running', state: 'suspended' } },
    })
  t.match(await exec('cat note'), { stdout: 'kept\n' })
  t.match((await api('GET', `/boxes/${box.id}`)).json, {
    box: { observedState: 'running', desiredState: 'running' },
  })
})
