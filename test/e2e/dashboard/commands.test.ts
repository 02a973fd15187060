// The commands of a real box in a browser: what each action did is checked with the API.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard, testAccessibility, waitForExpression } from '../../support/dashboard.ts'
import { waitUntil } from '../../support/wait-until.ts'

const getCommandId = (page: Page) => new URL(page.url()).searchParams.get('command')

t.test('the page of the commands', { skip: NO_BROWSER }, async (t) => {
  const { page, url, box, api, edge, problems, waitForState } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}/commands`,
  )
  const load = async (id: string | null) => (await api('GET', `/boxes/${box.id}/commands/${id}`)).json.command
  const run = async (text: string) => {
    await page.getByLabel('Command', { exact: true }).fill(text)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Output' }).waitFor()
    return getCommandId(page)
  }

  await t.test('run with the keyboard, and download the output', async (t) => {
    const id = await run(
      "printf '\\033[1;31mred\\033[0m \\033]0;title\\007<b onclick=x>\\u202e\\n'; head -c 900000 /dev/zero | tr '\\0' x; echo; echo last; seq 2000; exit 3",
    )
    await page.getByText('exited with 3').waitFor()
    t.match(await load(id), {
      status: 'exited',
      exitCode: 3,
      mode: 'detached',
      actor: { userId: box.ownerUserId },
    })
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download stdout' }).click(),
    ])
    t.match(download.suggestedFilename(), `${box.hostname}-${id}-stdout`)
  })

  await t.test(
    'a search shows the part of the output with the match: colours, and text that attacks',
    async (t) => {
      const output = page.getByRole('log')
      await output.getByText('2000', { exact: true }).waitFor()
      t.equal(await output.locator('.line').count(), 500, 'the document has the end of the output')
      await page.getByLabel('Search stdout').fill('LAST')
      await page.getByText('Match 1 of 1, line 3').waitFor()
      t.equal(await page.locator('.line.current').textContent(), 'last')
      t.match(await output.locator('.fg-1.bold').textContent(), 'red')
      const [first = ''] = await output.locator('.line').allTextContents()
      t.match(first, '⟨U+001B⟩]0;title⟨U+0007⟩<b onclick=x>')
      t.equal(await output.locator('b').count(), 0)
      t.match(await output.textContent(), 'more characters in this line')
      await page.getByRole('button', { name: 'Show later lines' }).click()
      await output.getByText('600', { exact: true }).waitFor()
      await page.getByLabel('Search stdout').fill('absent')
      await page.getByText('No line matches.').waitFor()
      const follow = page.getByRole('button', { name: 'Follow the end' })
      t.equal(await follow.getAttribute('aria-pressed'), 'false', 'a match is not scrolled away')
      await follow.click()
      await output.getByText('2000', { exact: true }).waitFor()
      await waitForExpression(
        page,
        `(({ scrollTop, clientHeight, scrollHeight }) => scrollHeight - scrollTop - clientHeight < 2)(document.querySelector('[role=log]'))`,
      )
      await page.getByRole('button', { name: 'Wrap long lines' }).click()
      await page.locator('.output.unwrapped').waitFor()
      await page.getByRole('button', { name: 'Wrap long lines' }).click()
    },
  )

  await t.test('a running command is followed, stopped, and run again', async (t) => {
    await page.getByRole('link', { name: 'All commands' }).click()
    const id = await run('echo begin; while [ ! -e go ]; do sleep 0.05; done; echo after; exec sleep 1000')
    await page.getByRole('log').getByText('begin').waitFor()
    t.equal((await load(id)).status, 'running')
    await edge(box.id, 'POST', '/exec', { command: 'touch go' })
    await page.getByRole('log').getByText('after').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('killed by TERM').waitFor()
    t.match(await load(id), { status: 'killed', signal: 'TERM' })
    t.equal(await page.getByRole('log').locator('.line').count(), 2, 'no line is repeated')
    await page.getByRole('button', { name: 'Run again' }).click()
    await waitUntil('another command is shown', async () => getCommandId(page) !== id)
    await page.getByRole('log').getByText('after').waitFor()
    t.match(await load(getCommandId(page)), { status: 'running', command: (await load(id)).command })
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('killed by TERM').waitFor()
  })

  await t.test('the arrow keys recall earlier commands, and what was typed', async (t) => {
    await page.getByRole('link', { name: 'All commands' }).click()
    await page.getByRole('row').nth(4).waitFor()
    const field = page.getByLabel('Command', { exact: true })
    await field.fill('typed')
    await page.keyboard.press('ArrowUp')
    t.match(await field.inputValue(), /^echo begin/)
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowUp')
    t.match(await field.inputValue(), /^printf/)
    await page.keyboard.press('ArrowUp')
    t.match(await field.inputValue(), /^printf/, 'the oldest one')
    for (let index = 0; index < 3; index += 1) await page.keyboard.press('ArrowDown')
    t.equal(await field.inputValue(), 'typed')
    await field.fill('')
    await page
      .getByRole('link', { name: /^echo begin/ })
      .first()
      .click()
    await page.getByRole('log').getByText('after').waitFor()
  })

  await t.test('the history is readable while the box is suspended', async (t) => {
    await api('POST', `/boxes/${box.id}/suspend`)
    await waitForState(box.id, 'suspended')
    await page.getByRole('link', { name: 'All commands' }).click()
    await page.getByText('A command wakes it.').waitFor()
    await page.getByRole('row').nth(4).waitFor()
    t.equal(await page.getByRole('row').count(), 5, 'a heading and four commands')
    await page.getByLabel('Status').selectOption('exited')
    await page.getByRole('row', { name: 'exited with 3' }).waitFor()
    await page.getByRole('row', { name: 'killed by TERM' }).first().waitFor({ state: 'detached' })
    await page.getByLabel('Filter').fill('printf')
    await page.getByRole('link', { name: 'printf' }).click()
    await page.getByRole('log').getByText('2000', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'All commands' }).click()
  })

  await t.test('an event of the audit log leads to the commands of its box', async (t) => {
    const getSuspension = () => page.getByRole('listitem').filter({ hasText: ' suspended box ' }).first()
    const openAudit = async () => {
      await page.goto(`${url}/workspace/audit`)
      await getSuspension().getByRole('link').click()
      await page.getByRole('link', { name: 'printf' }).waitFor()
    }
    await openAudit()
    t.equal(page.url(), `${url}/boxes/${box.hostname}/commands`)
    await page.goto(`${url}/boxes/${box.id}/commands`)
    await page.waitForURL(`${url}/boxes/${box.hostname}/commands`)

    await api('DELETE', `/boxes/${box.id}`)
    await waitForState(box.id, 'terminated')
    await api('POST', '/boxes', { name: box.hostname })
    await page.goto(`${url}/workspace/audit`)
    await getSuspension()
      .getByRole('link', { name: `${box.hostname} (deleted)` })
      .waitFor()
    await openAudit()
    t.equal(page.url(), `${url}/boxes/${box.id}/commands`)
    await testAccessibility(t, page, () => page.getByText('The box was deleted at').waitFor(), 'deleted-box')
    t.equal(await page.getByRole('heading', { level: 1 }).textContent(), box.hostname)
    t.equal(await page.getByRole('button', { name: 'Run' }).count(), 0)
    await page.getByRole('link', { name: 'printf' }).click()
    await page.getByRole('log').getByText('2000', { exact: true }).waitFor()
    await page.locator('main .commands-button').last().click()
    await page.getByText(`box output ${box.id} ${getCommandId(page)}`).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'All commands' }).click()
    await page.getByRole('row').nth(4).waitFor()
    t.same(problems, [])

    await page.goto(`${url}/boxes/${crypto.randomUUID()}/commands`)
    await page.getByText('The records of this box are not stored any more').waitFor()
    t.ok(problems.splice(0).every((text) => text.includes('404')))
  })

  t.same(problems, [], 'no violation of the policy and no error')
})
