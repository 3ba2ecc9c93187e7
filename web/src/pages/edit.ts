// The editor of one file.

import { start } from "../editor/app";
import { type PageData, read } from "../editor/page";

const data = read<PageData>("edit");
if (data) start(data);
