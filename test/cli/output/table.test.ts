// Tables fit the terminal.
import t from 'tap'
import { formatTable } from '../../../cli/output/table.ts'

t.test('truncates lines at the width of the terminal, without splitting a character', async (t) => {
  const rows = [
    ['ID', 'COMMAND'],
    ['p_1', `make the whole world of ${'🌳'.repeat(6)}`],
  ]
  t.equal(formatTable(rows), 'ID   COMMAND\np_1  make the whole world of 🌳🌳🌳🌳🌳🌳')
  t.equal(formatTable(rows, 33), 'ID   COMMAND\np_1  make the whole world of 🌳🌳🌳…')
  t.equal(formatTable(rows, 35), formatTable(rows))
  t.equal(formatTable(rows, 3), 'ID   COMMAND\np_1  make the whole worl…', 'keeps 20 characters of it')
})
