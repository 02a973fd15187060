// The order of the files of a run, and its budget.
import t from 'tap'
import { createBudget, createEstimate, sortByValue, sortLongestFirst } from './order.ts'

t.test('the file that took longest is the first one', async (t) => {
  const files = ['test/a/short.test.ts', 'test/a/new.test.ts', 'test/e2e/new.test.ts', 'test/a/long.test.ts']
  const seconds = createEstimate({ 'test/a/short.test.ts': 0.5, 'test/a/long.test.ts': 60 }, 1)
  t.same(sortLongestFirst(files, seconds), [
    'test/a/long.test.ts',
    'test/e2e/new.test.ts',
    'test/a/new.test.ts',
    'test/a/short.test.ts',
  ])
})

t.test('a slow machine needs more time for a file that it has not run', async (t) => {
  const seconds = createEstimate({ 'test/a/known.test.ts': 7 }, 4)
  t.equal(seconds('test/a/known.test.ts'), 7)
  t.equal(seconds('test/a/new.test.ts'), 12)
})

t.test('each file is in the first third of one of three successive revisions', async (t) => {
  const files = Array.from({ length: 300 }, (_, i) => `test/a/${i}.test.ts`)
  const isLong = (file: string) => file.endsWith('7.test.ts')
  const sort = (revision: number) => sortByValue(files, { seconds: () => 1, revision, isLong })
  const orders = [41, 42, 43].map(sort)
  for (const order of orders) t.same([...order].sort(), [...files].sort(), 'no file is lost')
  const isShare = (file: string, order: string[]) => order.indexOf(file) < 130
  t.same(
    files.filter((file) => !orders.some((order) => isShare(file, order))),
    [],
  )
  const firstShort = sort(41).findIndex((file) => !isLong(file))
  t.ok(sort(41).slice(0, firstShort).every(isLong))
  t.ok(firstShort > 3, 'files that run in no other part are the first ones of a third')
})

t.test('a budget has time for what ends before it', async (t) => {
  let now = 1000
  const budget = createBudget(2, () => now)
  t.ok(budget.hasTimeFor(119))
  t.notOk(budget.hasTimeFor(120))
  now += 100_000
  t.ok(budget.hasTimeFor(19))
  t.notOk(budget.hasTimeFor(20))
  t.equal(budget.remainingSeconds(), 20)
  now += 100_000
  t.equal(budget.remainingSeconds(), 0)
  t.notOk(budget.hasTimeFor(0))
  t.ok(createBudget(undefined).hasTimeFor(1e9))
})
