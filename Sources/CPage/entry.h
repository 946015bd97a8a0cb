// The entry of one file in the table of page.c. Define FILE_NAME as the name of the file, without quotes, before each inclusion.
//
// No macro can hold an #embed, so that the entry is a file of its own. The second #embed costs no memory: sizeof only counts.
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define PATH TEXT(../Serving/Page/FILE_NAME)
{
    TEXT(FILE_NAME),
    (const unsigned char[]){
#embed PATH
    },
    sizeof(const unsigned char[]){
#embed PATH
    },
},
#undef PATH
#undef TEXT
#undef TEXT_OF
#undef FILE_NAME
