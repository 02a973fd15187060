// Uploads and downloads 1 GiB, the largest file of one transfer.
import t from 'tap'
import { testLargeFile } from '../support/large-file.ts'

t.test('uploads and downloads 1 GiB in constant memory', (t) => testLargeFile(t, 1024))
