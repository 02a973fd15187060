// The CSV of the audit log: quoting, cells that are safe in spreadsheets, and the name of the file.
import t from 'tap'
import { CSV_HEADER, createCsvFileName, formatCsv } from '../../../coordinator/audit/csv.ts'
import type { AuditEventRow } from '../../../coordinator/db/schema.ts'

const row: AuditEventRow = {
  workspace_id: 'ws_1',
  no: 7,
  at: Date.UTC(2030, 0, 31, 23, 5, 9, 12),
  kind: 'exec',
  origin: 'client',
  actor_kind: 'user',
  actor_user_id: null,
  actor_token_id: 'key_1',
  box_id: null,
  detail: '{"a":"b"}',
  salt: '',
  detail_hash: '',
  hash: '',
}

t.test('one line per event, with the columns of the header', async (t) => {
  t.equal(CSV_HEADER, 'id,at,kind,origin,actor_kind,actor_user_id,actor_token_id,box_id,detail\r\n')
  t.equal(formatCsv([row]), '7,2030-01-31T23:05:09.012Z,exec,client,user,,key_1,,"{""a"":""b""}"\r\n')
  t.match(formatCsv([{ ...row, detail: null }]), /,\{\}\r\n$/, 'an erased detail is empty')
  t.equal(formatCsv([row, row]).split('\r\n').length, 3)
})

t.test('cells with separators are quoted, and no cell is a formula', async (t) => {
  const format = (text: string) =>
    formatCsv([{ ...row, kind: text }])
      .split('Z,')[1]
      ?.split(',client')[0]
  for (const [text, cell] of [
    ['a,b', '"a,b"'],
    ['a"b', '"a""b"'],
    ['a\nb', '"a\nb"'],
    ['a\rb', '"a\rb"'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['\r=1', '"\'\r=1"'],
    ['=HYPERLINK("x","y")', '"\'=HYPERLINK(""x"",""y"")"'],
    ['a=1', 'a=1'],
  ] as const)
    t.equal(format(text), cell, JSON.stringify(text))
})

t.test('the name of the file has the time in UTC', async (t) => {
  t.equal(createCsvFileName(row.at), 'audit-20300131-230509.csv')
})
