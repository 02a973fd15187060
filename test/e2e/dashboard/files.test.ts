// The page of the files of a real box, in a browser: what each action did is checked with the API.
import { mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard, waitForExpression } from '../../support/dashboard.ts'

/** One red pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
)
const HOSTILE = '<img src=x onerror=alert(1)>\u202egpj.exe'

t.test('the files of a box', { skip: NO_BROWSER }, async (t) => {
  const { box, page, problems, edge, api, waitForState, url } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}/files`,
  )
  const request = (method: string, path: string, body?: unknown) => edge(box.hostname, method, path, body)
  const exec = (command: string) => request('POST', '/exec', { command })
  const read = async (path: string) =>
    (await request('GET', `/files?path=${encodeURIComponent(path)}`)).json.content
  const exists = async (path: string) =>
    (await request('GET', `/files/stat?path=${encodeURIComponent(path)}`)).status === 200
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const link = (name: string) => page.getByRole('link', { name, exact: true })
  const dialog = page.getByRole('dialog')
  const openHome = async () => {
    await page.goto(`${url}/boxes/${box.hostname}/files`)
    await page.getByText(/entries, read/).waitFor()
  }
  for (const [path, content] of [
    ['a.txt', 'first\r\nsecond\r\n'],
    [HOSTILE, '<script>alert(1)</script>\u202e'],
    ['image.svg', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'],
    ['dir/in.txt', 'in'],
    ['dir/code.ts', "const html = '<b>\u202e' // text\n"],
  ] as const) {
    if (path.startsWith('dir/')) await request('POST', '/files/mkdir', { path: 'dir', parents: true })
    await request('PUT', '/files', { path, content })
  }
  await request('PUT', '/files', { path: 'pixel.txt', content: PNG.toString('base64'), encoding: 'base64' })
  await exec('printf x > "$(printf \'bad\\377\')"; head -c 1100000 /dev/zero >large; ln -s missing broken')
  await page.getByRole('button', { name: 'Refresh' }).click()

  await t.test('names are text, and those without a path have no actions', async (t) => {
    await link('a.txt').waitFor()
    const hostile = '<img src=x onerror=alert(1)>⟨U+202E⟩gpj.exe'
    t.ok(await link(hostile).isVisible())
    const row = page.getByRole('row', { name: /bad\ufffd/ })
    t.equal(await row.getByRole('button').count(), 0)
    t.match(await page.getByRole('row', { name: /^broken/ }).textContent(), /→ missing \(not found\)/)
    await link(hostile).click()
    await page.getByText('<script>alert(1)</script>⟨U+202E⟩').waitFor()
  })

  await t.test('a directory and an image have URLs', async (t) => {
    await page.goBack()
    await link('dir/').click()
    await link('in.txt').waitFor()
    t.match(new URL(page.url()).searchParams.get('path'), /\/dir$/)
    await page.reload()
    await link('code.ts').click()
    await page.locator('.token-keyword', { hasText: 'const' }).waitFor()
    t.equal(await page.locator('.token-string').textContent(), "'<b>⟨U+202E⟩'")
    t.equal(await page.locator('.content b').count(), 0, 'the text is no markup')
    await page.goBack()
    await link('in.txt').click()
    await page.getByText('in', { exact: true }).waitFor()
    await link('Home').click()
    await link('pixel.txt').click()
    const image = page.getByRole('img', { name: 'pixel.txt' })
    await image.waitFor()
    t.match(await image.getAttribute('src'), /^blob:/)
    await waitForExpression(page, "document.querySelector('main img').naturalWidth === 1")
    await page.goBack()
    await link('image.svg').click()
    await page.getByText('<svg xmlns').waitFor()
    t.equal(await page.locator('main img').count(), 0, 'an SVG is text')
    await page.goBack()
    await link('large').click()
    await page.getByText('payload_too_large').waitFor()
    await page.goBack()
  })

  await t.test('edit with the keyboard only; a change by another program is not lost', async (t) => {
    problems.splice(0)
    await link('a.txt').focus()
    await page.keyboard.press('Enter')
    await page.getByText('first').waitFor()
    await button('Edit').focus()
    await page.keyboard.press('Enter')
    const area = page.getByRole('textbox')
    await area.waitFor()
    await waitForExpression(page, "document.activeElement.tagName === 'TEXTAREA'")
    await page.keyboard.press('Control+Home')
    await page.keyboard.type('zero\n')
    await page.keyboard.press('Control+s')
    await page.getByText('Saved.', { exact: true }).waitFor()
    t.equal(await read('a.txt'), 'zero\r\nfirst\r\nsecond\r\n')

    await request('PUT', '/files', { path: 'a.txt', content: 'theirs' })
    await page.keyboard.type('mine')
    await page.keyboard.press('Control+s')
    await page.getByText('Another program has changed the file').waitFor()
    t.equal(await read('a.txt'), 'theirs')
    await link('Boxes').click()
    await page.getByRole('heading', { name: 'Boxes' }).waitFor()
    await page.goBack()
    await area.waitFor()
    t.match(await area.inputValue(), /mine/, 'the text is kept while another page is shown')
    await button('Save').click()
    await button('Replace it with my text').click()
    await page.getByText('Saved.', { exact: true }).waitFor()
    t.match(await read('a.txt'), /^zero\r\nmine/)
    await button('Close').click()
    await page.getByText('zero').waitFor()
  })

  await t.test('create, rename and delete', async (t) => {
    await openHome()
    await button('Create a directory').click()
    await dialog.getByLabel('Name').fill('new dir')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await link('new dir/').waitFor()
    t.ok(await exists('new dir'))
    await waitForExpression(page, "document.activeElement.textContent === 'Create a directory'")

    await button('Rename dir').click()
    await dialog.getByLabel('New name, or path').fill('new dir')
    await dialog.getByRole('button', { name: 'Rename', exact: true }).click()
    await dialog.locator('.problem', { hasText: 'path_exists' }).waitFor()
    await dialog.getByLabel('New name, or path').fill('new dir/moved')
    t.match(await dialog.locator('code').first().textContent(), /mv .*\/dir '.*\/new dir\/moved'/)
    await dialog.getByRole('button', { name: 'Rename', exact: true }).click()
    await link('dir/').waitFor({ state: 'detached' })
    t.ok(await exists('new dir/moved/in.txt'))

    await button('Delete new dir').click()
    const submit = dialog.getByRole('button', { name: 'Delete', exact: true })
    await dialog.getByLabel('Type new dir').fill('new')
    t.ok(await submit.isDisabled())
    await dialog.getByLabel('Type new dir').fill('new dir')
    await submit.click()
    await link('new dir/').waitFor({ state: 'detached' })
    t.notOk(await exists('new dir'))
    await waitForExpression(page, "document.activeElement.tagName === 'H1'")
    await button('Delete large').click()
    await submit.click()
    await link('large').waitFor({ state: 'detached' })
    problems.splice(0)
  })

  await t.test('upload files, one of which exists', async (t) => {
    const dir = t.testdir()
    mkdirSync(join(dir, 'sub'))
    writeFileSync(join(dir, 'up.bin'), Buffer.alloc(300_000, 7))
    writeFileSync(join(dir, 'a.txt'), 'replaced')
    await page.getByLabel('Upload files').setInputFiles([join(dir, 'up.bin'), join(dir, 'a.txt')])
    await page.getByText('1 of 2 files uploaded').waitFor()
    await link('up.bin').waitFor()
    const { stdout } = (await exec("cat up.bin | tr '\\007' x | wc -c; tr -d '\\007' <up.bin | wc -c")).json
    t.equal(stdout, '300000\n0\n')
    t.not(await read('a.txt'), 'replaced')
    await page.getByRole('button', { name: /^Replace .*a\.txt$/ }).click()
    await page.getByText('2 of 2 files uploaded').waitFor()
    t.equal(await read('a.txt'), 'replaced')
    await button('Clear the list').click()
  })

  await t.test('drop files', async (t) => {
    const transfer = await page.evaluateHandle(
      "(() => { const t = new DataTransfer(); t.items.add(new File(['dropped'], 'dropped.txt')); return t })()",
    )
    await page.getByRole('region', { name: 'Upload', exact: true }).dispatchEvent('drop', {
      dataTransfer: transfer,
    })
    await link('dropped.txt').waitFor()
    t.equal(await read('dropped.txt'), 'dropped')
    await button('Clear the list').click()
    t.ok(problems.splice(0).every((text) => text.includes('404')))
  })

  await t.test('download a file and a directory', async (t) => {
    await exec('mkdir -p tree && echo leaf >tree/leaf')
    await button('Refresh').click()
    const download = async (name: string) => {
      const [started] = await Promise.all([page.waitForEvent('download'), button(`Download ${name}`).click()])
      return { name: started.suggestedFilename(), bytes: await readFile(await started.path()) }
    }
    t.match(await download('a.txt'), { name: 'a.txt', bytes: Buffer.from('replaced') })
    t.match((await download('tree')).bytes.toString('latin1'), /tree\/leaf/)
    t.match(page.url(), /\/files$/, 'the page stays')
  })

  await link('a.txt').click()
  await page.getByText('replaced').waitFor()

  await t.test('a suspended box is woken from the page', async (t) => {
    await api('POST', `/boxes/${box.id}/suspend`)
    await page.getByText('Files need a running box').waitFor()
    await waitForState(box.id, 'suspended')
    await button(`Wake ${box.hostname}`).last().click()
    await page.getByText('replaced').waitFor()
    t.equal((await waitForState(box.id, 'running')).desiredState, 'running')
    // The page may send a request before the feed reports the suspend.
    t.ok(problems.splice(0).every((text) => text.includes('409')))
  })
  t.same(problems, [], 'no violation of the policy and no error')
})
