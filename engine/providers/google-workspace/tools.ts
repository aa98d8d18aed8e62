import { calendar } from './calendar.ts';
import { docs } from './docs.ts';
import { drive } from './drive.ts';
import { gmail } from './gmail.ts';
import { sheets } from './sheets.ts';
import { taskLists } from './task_lists.ts';

export const tools = [...gmail, ...calendar, ...drive, ...docs, ...sheets, ...taskLists];
